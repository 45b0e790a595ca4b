// SPDX-License-Identifier: Apache-2.0
// Parameters of a cable.
#pragma once

#include "model/base/params.h"

namespace rnicsim::fabric {

using namespace rnicsim::literals;

struct LinkParams {
  Duration latency = 90_ns;

  void describe(ParamVisitor& visit) {
    // At least 1 ns, because a fabric can be split over processes at any link.
    visit.param("latency", latency, "PHY, FEC and cable, one way; docs/timing.md", {1'000, 1e12});
  }
};

}  // namespace rnicsim::fabric
