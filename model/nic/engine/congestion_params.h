// SPDX-License-Identifier: Apache-2.0
// Parameters of congestion control: at the sender (the reaction point, RP) and, in notification_params.h, at the
// receiver (the notification point, NP). Parameters that NVIDIA's NICs also have use their names (ecn/roce_np and
// ecn/roce_rp in sysfs, mlxconfig).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/base/policy_choice.h"
#include "model/base/units.h"
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

// roce::RoundTripLimit of a control.
struct ControlRoundTrip {
  Duration most{};
  std::string parameters;  // "nic.congestion.hpcc.base_rtt"
};

struct CongestionParams {
  static constexpr const char* kEcnWords[] = {"forced", "program"};

  PolicyChoice<roce::CongestionControl> control{"none"};
  std::string ecn = "program";
  NotificationParams np;
  bool cnp_on_retransmit = false;
  std::uint32_t ack_every = 4;

  bool ecn_forced() const { return ecn == kEcnWords[0]; }
  // `line`: the port's rate.
  ControlInputs inputs(BitRate line) const;
  std::optional<ControlRoundTrip> round_trip_limit(BitRate line) const;  // nullopt: the control has no limit
  void describe(ParamVisitor& visit);
};

}  // namespace rnicsim::nic
