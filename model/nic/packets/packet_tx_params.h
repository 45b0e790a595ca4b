// SPDX-License-Identifier: Apache-2.0
// Parameters and counters of the transmit pipeline.
#pragma once

#include <cstdint>

#include "model/base/params.h"
#include "model/base/stats.h"

namespace rnicsim::nic {

using namespace rnicsim::literals;

struct PacketTxParams {
  Duration latency = 170_ns;
  std::uint32_t queue_packets = 64;

  void describe(ParamVisitor& visit) {
    visit.param("latency", latency, "fixed part of the transmit pipeline; docs/timing.md", {0, 1e9});
    visit.param("queue_packets", queue_packets,
                "packets of a priority between the engine and the wire; the engine's credits", {2, 65536});
  }
};

struct PacketTxCounters {
  Counter packets = 0;
  Counter payload_bytes = 0;
  Counter roce_packets = 0;
  Counter roce_bytes = 0;
  Counter group_packets = 0;
  Counter no_source_gid = 0;

  void describe(CounterVisitor& visit) const {
    visit.counter("packets", packets, "packets", "packets sent");
    visit.counter("payload_bytes", payload_bytes, "bytes", "payload bytes sent");
    visit.counter("roce_packets", roce_packets, "packets", "packets sent that are not raw frames");
    visit.counter("roce_bytes", roce_bytes, "bytes", "bytes of the frames of these packets, without FCS");
    visit.counter("group_packets", group_packets, "packets", "packets sent to a multicast group");
    visit.counter("no_source_gid", no_source_gid, "packets",
                  "packets dropped: the address vector names an empty GID entry");
  }
};

}  // namespace rnicsim::nic
