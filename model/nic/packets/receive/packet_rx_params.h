// SPDX-License-Identifier: Apache-2.0
// Parameters and counters of the receive pipeline.
#pragma once

#include "model/base/params.h"
#include "model/base/stats.h"

namespace rnicsim::nic {

using namespace rnicsim::literals;

struct PacketRxParams {
  Duration latency = 170_ns;

  void describe(ParamVisitor& visit) {
    visit.param("latency", latency, "fixed part of the receive pipeline; docs/timing.md", {0, 1e9});
  }
};

struct PacketRxCounters {
  Counter packets = 0;
  Counter payload_bytes = 0;
  Counter frame_bytes = 0;
  Counter group_packets = 0;
  Counter rx_icrc_encapsulated = 0;
  Counter malformed = 0;
  Counter not_ours = 0;
  Counter bad_pkey = 0;

  void describe(CounterVisitor& visit) const {
    visit.counter("packets", packets, "packets", "good packets received");
    visit.counter("payload_bytes", payload_bytes, "bytes", "payload bytes received");
    visit.counter("frame_bytes", frame_bytes, "bytes", "bytes of the frames of these packets, without FCS");
    visit.counter("group_packets", group_packets, "packets", "good packets received, to a multicast group");
    visit.counter("rx_icrc_encapsulated", rx_icrc_encapsulated, "packets", "dropped: wrong ICRC");
    visit.counter("malformed", malformed, "frames",
                  "packets dropped: truncated, wrong length, checksum, version or opcode");
    visit.counter("not_ours", not_ours, "frames",
                  "packets dropped: for another MAC or IP address, or a group without a QP");
    visit.counter("bad_pkey", bad_pkey, "packets", "packets dropped: P_Key not in the table");
  }
};

}  // namespace rnicsim::nic
