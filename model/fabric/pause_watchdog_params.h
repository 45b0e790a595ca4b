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
                "time after which a lossless queue is in a pause storm: frames waited, the queue was paused, and no "
                "frame left; 0: no watchdog",
                {0, 1e14});
    visit.param("restoration_time", restoration_time, "time without a pause after which the storm is over", {0, 1e14});
    visit.param("action", action,
                "action in a storm: drop the waiting and new frames of the queue, forward frames in spite of pauses, "
                "or only report the storm",
                kActionWords);
    visit.idle(detection_time == Duration{}, {"restoration_time", "action"}, "detection_time");
  }
};

}  // namespace rnicsim::fabric
