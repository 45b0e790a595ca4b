// SPDX-License-Identifier: Apache-2.0
#include "sim/trace/pair_progress.h"

#include <algorithm>

#include "model/roce/types.h"

namespace rnicsim::sim {
namespace {

std::uint32_t psn_of(const TraceEvent& event) {
  return static_cast<std::uint32_t>(value_of(event, field::psn)) & roce::Psn::kMask;
}

// False: `psn` is not later than `highest`.
bool advance(std::optional<std::uint32_t>& highest, std::uint32_t psn) {
  if (highest && psn_distance(psn, *highest) <= 0) return false;
  highest = psn;
  return true;
}

}  // namespace

bool PairProgress::add(const TraceEvent& event) {
  switch (event.kind) {
    case EventKind::qp_state:
      if (is_reset(event)) *this = {};
      state_ = to_text(*field::to.info_in(event.kind), value_of(event, field::to));
      return true;
    case EventKind::wqe: return is_send_queue(event) && add_wqe(event);
    case EventKind::cqe: return is_requesters(event) && add_cqe(event);
    case EventKind::packet_sent: return is_request(event) && add_sent(event);
    case EventKind::packet_received: return is_response(event) && add_received(event);
    default: return false;
  }
}

std::uint32_t PairProgress::outstanding_psns() const {
  if (!sent_ || !acknowledged_) return 0;
  return std::uint32_t(std::max(psn_distance(*sent_, *acknowledged_), 0));
}

bool PairProgress::add_wqe(const TraceEvent& event) {
  if (wqes_.size() == kMostWqes) wqes_.pop_front();
  wqes_.push_back(value_of(event, field::index));
  return true;
}

bool PairProgress::add_cqe(const TraceEvent& event) {
  const auto found = std::ranges::find(wqes_, value_of(event, field::wqe_counter));
  if (found == wqes_.end()) return false;
  wqes_.erase(wqes_.begin(), found + 1);
  return true;
}

bool PairProgress::add_sent(const TraceEvent& event) {
  const auto psn = psn_of(event);
  // All PSNs before the first one in the trace count as acknowledged.
  if (!acknowledged_) acknowledged_ = (psn - 1) & roce::Psn::kMask;
  return advance(sent_, psn);
}

// A NAK acknowledges all PSNs before its own. A READ request uses one PSN for each response packet, so a response may
// have a higher PSN than any request packet sent.
bool PairProgress::add_received(const TraceEvent& event) {
  const auto psn = is_nak(event) ? (psn_of(event) - 1) & roce::Psn::kMask : psn_of(event);
  const bool is_later = advance(acknowledged_, psn);
  return (sent_ && advance(sent_, psn)) || is_later;
}

}  // namespace rnicsim::sim
