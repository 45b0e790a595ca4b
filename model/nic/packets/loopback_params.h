// SPDX-License-Identifier: Apache-2.0
// Parameters and counters of the loopback.
#pragma once

#include "model/base/params.h"
#include "model/base/stats.h"

namespace rnicsim::nic {

using namespace rnicsim::literals;

struct LoopbackParams {
  BitRate rate = 128_Gbps;
  Duration latency = 50_ns;

  void describe(ParamVisitor& visit) {
    visit.param("rate", rate,
                "rate of the loopback from transmit to receive inside the device; E: rate of the host's PCIe",
                {1e6, 1e13});
    visit.param("latency", latency, "latency of the loopback; E: a switch's decision without PHY and cable", {0, 1e9});
  }
};

struct LoopbackCounters {
  Counter frames = 0;
  Counter bytes = 0;

  void describe(CounterVisitor& visit) const {
    visit.counter("frames", frames, "frames", "frames that this device sent to itself");
    visit.counter("bytes", bytes, "bytes", "bytes of these frames, without FCS");
  }
};

}  // namespace rnicsim::nic
