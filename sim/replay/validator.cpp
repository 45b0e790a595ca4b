// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/validator.h"

#include <fmt/format.h>

#include <algorithm>

namespace rnicsim::sim::replay {
namespace {

// True: a READ that begins inside an executed READ and not at the start of one.
bool is_resumed(const QpEnvironment& qp, const Request& again) {
  bool inside = false;
  for (const auto& request : qp.requests) {
    if (&request == &again) break;
    if (request.packet->row().operation != roce::Operation::read || !request.executed) continue;
    const auto ahead = distance(request.first_psn(), again.first_psn());
    if (ahead == 0) return false;
    inside |= ahead > 0 && ahead < static_cast<std::int32_t>(request.packets);
  }
  return inside;
}

std::vector<Asked> asked_of(const QpEnvironment& qp) {
  std::vector<Asked> asked;
  for (const auto& request : qp.requests) {
    const bool again = request.duplicate && request.packet->row().operation == roce::Operation::read;
    asked.push_back({.frame = request.packet->frame,
                     .last = request.last_psn(),
                     .ack_request = request.packet->headers.bth.ack_request,
                     .duplicate = request.duplicate,
                     .executed = request.executed,
                     .msn = request.msn,
                     .resumed = again && is_resumed(qp, request)});
  }
  return asked;
}

std::string status_text(const std::optional<roce::Status>& status) {
  return status ? fmt::format("status {}", static_cast<int>(*status)) : "no completion";
}

// Compares status and returned data of each request with those that the captured answers imply.
void compare_completions(const RequesterEnvironment& qp, const RequesterDriver::Result& ours, Comparison& result) {
  for (std::size_t i = 0; i < qp.posted.size(); ++i) {
    const auto& request = qp.posted[i];
    const auto& got = ours.completions[i];
    const bool success = request.outcome == roce::Status::success;
    if (got != request.outcome) {
      result.differences.push_back(
          {Subject::completion, request.frame, status_text(got), status_text(request.outcome), {}});
    } else if (success && request.wants_data() && ours.brought[i] != request.brought) {
      result.differences.push_back({Subject::completion,
                                    request.frame,
                                    "other bytes",
                                    fmt::format("{} bytes, as the answers brought them", request.brought.size()),
                                    {}});
    }
  }
}

// For a packet that our requester does not retransmit, because an RNR NAK acknowledged it. True: the real NIC's
// retransmission equals its first transmission.
bool sent_as_before(const RequesterEnvironment& qp, const WirePacket& again) {
  const auto first = std::ranges::find(qp.sent, again.psn(), &WirePacket::psn);
  return validate(packet_of(**first), packet_of(again), {.answers = false}).same();
}

}  // namespace

SentPacket packet_of(const WirePacket& packet) { return {packet.frame, packet.headers, packet.payload}; }

Comparison validate_responder(const QpEnvironment& qp, const ResponderDriver::Result& ours) {
  std::vector<Answer> theirs;
  for (const auto* answer : qp.answers) theirs.push_back(packet_of(*answer));
  return compare(asked_of(qp), ours.answers, theirs);
}

Comparison validate_requester(const RequesterEnvironment& qp, const RequesterDriver::Result& ours) {
  std::vector<SentPacket> theirs;
  std::size_t repeated = 0;
  for (const auto& event : qp.events) {
    if (!event.sent) continue;
    if (event.acknowledged && sent_as_before(qp, *event.packet))
      ++repeated;
    else
      theirs.push_back(packet_of(*event.packet));
  }
  auto result = compare_requests(ours.sent, theirs);
  result.equivalences[static_cast<std::size_t>(Equivalence::rnr_acknowledges)] += repeated;
  compare_completions(qp, ours, result);
  result.differences.insert(result.differences.end(), ours.timers.begin(), ours.timers.end());
  if (qp.hole)
    result.differences.push_back({Subject::capture,
                                  *qp.hole,
                                  std::nullopt,
                                  "earlier packets of this QP are missing: later packets are not compared",
                                  {}});
  return result;
}

}  // namespace rnicsim::sim::replay
