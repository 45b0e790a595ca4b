// SPDX-License-Identifier: Apache-2.0
// Parameters of a switch's PFC watchdog, named as in SONiC (`pfcwd start`).
#pragma once

#include <string>

#include "model/base/params.h"

namespace rnicsim::fabric {

struct PauseWatchdogParams {
  static constexpr const char* kActionWords[] = {"drop", "forward", "alert"};

  Duration detection_time{};
  Duration restoration_time{200'000'000};
  std::string action{kActionWords[0]};

  void describe(ParamVisitor& visit) {
    visit.param("detection_time", detection_time,
                "a queue without loss is in a pause storm when frames waited, the queue was paused, and no frame left "
                "for so long; 0: no watchdog",
                {0, 1e14});
    visit.param("restoration_time", restoration_time, "without a pause for so long the storm is over", {0, 1e14});
    visit.param("action", action,
                "in a storm: drop what waits in the queue and what comes for it, forward it in spite of pauses, or "
                "alert alone",
                kActionWords);
  }
};

}  // namespace rnicsim::fabric
