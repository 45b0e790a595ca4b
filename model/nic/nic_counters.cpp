// SPDX-License-Identifier: Apache-2.0
#include "model/nic/nic_counters.h"

namespace rnicsim::nic {

void NicCounters::describe(CounterVisitor& visit) const {
  visit.group("pcie", pcie);
  visit.group("doorbell", doorbell);
  visit.group("command", command);
  visit.group("contexts", contexts);
  visit.group("wqe_fetch", wqe_fetch);
  visit.group("shared_receives", shared_receives);
  visit.group("translation", translation);
  visit.group("atc", atc);
  visit.group("windows", windows);
  visit.group("dma", dma);
  visit.group("device_memory", device_memory);
  visit.group("atomics", atomics);
  visit.group("units", units);
  visit.group("send_wqes", send_wqes);
  visit.group("engine", engine);
  visit.group("completion", completion);
  visit.group("events", events);
  visit.group("congestion", notification);
  visit.group("tx", tx);
  visit.group("steering", steering);
  visit.group("rx", rx);
  visit.group("receive_buffer", receive_buffer);
  visit.group("raw", raw);
  visit.group("port", port);
  visit.group("loopback", loopback);
}

}  // namespace rnicsim::nic
