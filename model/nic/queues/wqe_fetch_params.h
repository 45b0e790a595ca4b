// SPDX-License-Identifier: Apache-2.0
// Parameters and counters of the fetch of WQEs.
#pragma once

#include <cstdint>
#include <string>

#include "model/base/params.h"
#include "model/base/stats.h"
#include "model/nic/contexts/miss_slots_counters.h"

namespace rnicsim::nic {

struct ReceiveWqeParams {
  std::uint32_t ahead = 32;
  std::uint32_t queues = 64;
  std::uint32_t ways = 4;
  std::uint32_t reads = 16;
  std::string replacement = "random";

  void describe(ParamVisitor& visit);
};

struct WqeFetchCounters {
  Counter fetches = 0;
  Counter bytes = 0;
  Counter displaced = 0;
  MissSlotsCounters receive_reads;

  void describe(CounterVisitor& visit) const {
    visit.counter("fetches", fetches, "requests", "reads of rings and doorbell records");
    visit.counter("bytes", bytes, "bytes", "bytes of these reads");
    visit.counter("displaced", displaced, "queue pairs",
                  "queue pairs whose receives were evicted for another queue pair");
    visit.group("receive_reads", receive_reads);
  }
};

}  // namespace rnicsim::nic
