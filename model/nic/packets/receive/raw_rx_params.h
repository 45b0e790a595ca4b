// SPDX-License-Identifier: Apache-2.0
// Parameters and counters of the receiver of raw frames.
#pragma once

#include "model/base/params.h"
#include "model/base/stats.h"

namespace rnicsim::nic {

using namespace rnicsim::literals;

struct RawRxParams {
  Duration lookup = 40_ns;

  void describe(ParamVisitor& visit) {
    visit.param("lookup", lookup,
                "time of a frame in the flow table, which processes one frame after another without a gap; E",
                {0, 1e9});
  }
};

struct RawRxCounters {
  Counter frames = 0;
  Counter copies = 0;
  Counter no_flow = 0;

  void describe(CounterVisitor& visit) const {
    visit.counter("frames", frames, "frames", "frames that match a flow");
    visit.counter("copies", copies, "frames", "deliveries of frames to queue pairs");
    visit.counter("no_flow", no_flow, "frames", "frames dropped: no flow matches");
  }
};

}  // namespace rnicsim::nic
