// SPDX-License-Identifier: Apache-2.0
// Parameters of congestion control: at the sender (the reaction point, RP) and, in notification_params.h, at the
// receiver (the notification point, NP). Parameters that NVIDIA's NICs also have use their names (ecn/roce_np and
// ecn/roce_rp in sysfs, mlxconfig).
#pragma once

#include <cstdint>
#include <string>

#include "model/base/policy_choice.h"
#include "model/nic/packets/notification_params.h"

namespace rnicsim::roce {
class CongestionControl;
}  // namespace rnicsim::roce

namespace rnicsim::nic {

// Inputs that a control needs (roce::CongestionControl::wants_...).
struct ControlInputs {
  bool acknowledgements = false;
  bool cnps = false;
  bool marks = false;
  bool telemetry = false;
};

struct CongestionParams {
  static constexpr const char* kEcnWords[] = {"forced", "program"};

  PolicyChoice<roce::CongestionControl> control{"none"};
  std::string ecn = "program";
  NotificationParams np;
  bool cnp_on_retransmit = false;
  std::uint32_t ack_every = 4;

  bool ecn_forced() const { return ecn == kEcnWords[0]; }
  ControlInputs inputs(BitRate line) const;  // `line`: the port's rate
  void describe(ParamVisitor& visit);
};

}  // namespace rnicsim::nic
