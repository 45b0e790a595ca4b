// SPDX-License-Identifier: Apache-2.0
// Finds the real NIC's answers to one request.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/replay/responder_environment.h"

namespace rnicsim::sim::replay {

// Calls `visit` for each answer with data to the request, with the index of the answer's PSN in the request. Answers to
// earlier requests, with other PSNs, may lie between.
template <class Visit>
void each_answer(const QpEnvironment& qp, const Request& request, Visit&& visit) {
  auto at = std::ranges::upper_bound(qp.answers, request.packet->frame, {}, &WirePacket::frame);
  for (; at != qp.answers.end(); ++at) {
    const auto& answer = **at;
    const auto index = distance(request.first_psn(), answer.psn());
    const bool other = index < 0 || index >= static_cast<std::int32_t>(request.packets);
    if (other || answer.row().operation == roce::Operation::acknowledge) continue;
    visit(answer, static_cast<std::uint32_t>(index));
    if (answer.psn() == request.last_psn()) break;
  }
}

}  // namespace rnicsim::sim::replay
