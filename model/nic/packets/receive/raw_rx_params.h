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
    visit.param("lookup", lookup, "of a frame in the flow table, which takes them one behind another without a gap; E",
                {0, 1e9});
  }
};

struct RawRxCounters {
  Counter frames = 0;
  Counter copies = 0;
  Counter no_flow = 0;

  void describe(CounterVisitor& visit) const {
    visit.counter("frames", frames, "frames", "that a flow takes");
    visit.counter("copies", copies, "frames", "given to queue pairs: one of these for each that gets a frame");
    visit.counter("no_flow", no_flow, "frames", "dropped: no flow takes them");
  }
};

}  // namespace rnicsim::nic
