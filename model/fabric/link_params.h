// Parameters of a cable.
#pragma once

#include "model/base/params.h"

namespace rnicsim::fabric {

using namespace rnicsim::literals;

struct LinkParams {
  Duration latency = 90_ns;

  void describe(ParamVisitor& visit) {
    // A fabric can be cut over processes at any link, so none is instantaneous.
    visit.param("latency", latency, "PHY, FEC and cable, one way; docs/timing.md", {1'000, 1e12});
  }
};

}  // namespace rnicsim::fabric
