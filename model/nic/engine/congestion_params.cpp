// SPDX-License-Identifier: Apache-2.0
#include "model/nic/engine/congestion_params.h"

#include <memory>

#include "model/base/policy.h"
#include "model/base/policy_params.h"
#include "model/roce/congestion.h"

namespace rnicsim {

template class PolicyChoice<roce::CongestionControl>;

}  // namespace rnicsim

namespace rnicsim::nic {

namespace {

// nullptr: a control that never limits.
std::unique_ptr<roce::CongestionControl> made(const PolicyChoice<roce::CongestionControl>& control, BitRate line) {
  return make_policy<roce::CongestionControl>(control.name, control.params(control.name), line);
}

}  // namespace

ControlInputs CongestionParams::inputs(BitRate line) const {
  const auto own = made(control, line);
  if (!own) return {};
  return {.acknowledgements = own->wants_acknowledgements(),
          .cnps = own->wants_cnps(),
          .marks = own->wants_marks(),
          .telemetry = own->wants_telemetry()};
}

std::optional<ControlRoundTrip> CongestionParams::round_trip_limit(BitRate line) const {
  const auto own = made(control, line);
  const auto limit = own ? own->round_trip_limit() : std::nullopt;
  if (!limit) return std::nullopt;
  return ControlRoundTrip{limit->most, "nic.congestion." + control.name + '.' + limit->parameters};
}

void CongestionParams::describe(ParamVisitor& visit) {
  control.describe(visit, "control", "congestion control of queue pairs");
  visit.param("ecn", ecn,
              "ECN bits of requests and READ responses: ECT(0) whatever the program says (forced), or those of the "
              "traffic class that the program gives (program)",
              kEcnWords);
  visit.group("np", np);
  visit.param("cnp_on_retransmit", cnp_on_retransmit, "slow restart: a retransmission of a queue pair counts as a CNP");
  visit.param("ack_every", ack_every,
              "packets between two acknowledgement requests of a queue pair whose control needs acknowledgements; the "
              "last packet of a window also requests one",
              {1, 256});
  visit.idle(control.name == "none", {"cnp_on_retransmit"}, "control");
}

}  // namespace rnicsim::nic
