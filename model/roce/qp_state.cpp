// SPDX-License-Identifier: Apache-2.0
#include "model/roce/qp_state.h"

namespace rnicsim::roce {
namespace {

using namespace attr;
using enum QpState;

constexpr std::uint32_t kPathMoves = kAccess | kAlternatePath | kMigration;

struct Masks {
  std::uint32_t required;
  std::uint32_t optional;
};

struct Row {
  QpState from;
  QpState to;
  Masks ud, uc, rc;
  Masks raw{};  // raw packets need a port only

  Masks of(Transport transport) const;
};

constexpr std::uint32_t kIdentity = kPkeyIndex | kPort;
constexpr std::uint32_t kConnect = kPath | kPathMtu | kRemoteQpn | kReceivePsn;
constexpr std::uint32_t kRetries = kTimeout | kRetryCount | kRnrRetry | kMaxRdAtomic;

constexpr Row kTransitions[] = {
    {reset, init, {kIdentity | kQkey, 0}, {kIdentity | kAccess, 0}, {kIdentity | kAccess, 0}, {kPort, 0}},
    {init, init, {0, kIdentity | kQkey}, {0, kIdentity | kAccess}, {0, kIdentity | kAccess}},
    {init,
     rtr,
     {0, kPkeyIndex | kQkey},
     {kConnect, kAlternatePath | kAccess | kPkeyIndex},
     {kConnect | kMaxDestRdAtomic | kMinRnrTimer, kAlternatePath | kAccess | kPkeyIndex}},
    {rtr,
     rts,
     {kSendPsn, kCurrentState | kQkey},
     {kSendPsn, kCurrentState | kPathMoves},
     {kSendPsn | kRetries, kCurrentState | kPathMoves | kMinRnrTimer},
     {0, kRateLimit}},
    {rts,
     rts,
     {0, kCurrentState | kQkey},
     {0, kCurrentState | kPathMoves},
     {0, kCurrentState | kPathMoves | kMinRnrTimer},
     {0, kRateLimit}},
    {rts, sqd, {0, kSqdNotify}, {0, kSqdNotify}, {0, kSqdNotify}},
    {sqd,
     rts,
     {0, kCurrentState | kQkey},
     {0, kCurrentState | kPathMoves},
     {0, kCurrentState | kPathMoves | kMinRnrTimer}},
    {sqd,
     sqd,
     {0, kPkeyIndex | kQkey},
     {0, kPath | kPathMoves | kPkeyIndex},
     {0, kPort | kPath | kRetries | kMaxDestRdAtomic | kPathMoves | kPkeyIndex | kMinRnrTimer}},
    {sqe, rts, {0, kCurrentState | kQkey}, {0, kCurrentState | kAccess}, {0, 0}},
};

// Requester and responder of XRC: each lacks the attributes of the other side.
constexpr std::uint32_t kRequesterPart = kRetryCount | kRnrRetry | kMaxRdAtomic;
constexpr std::uint32_t kResponderPart = kMaxDestRdAtomic | kMinRnrTimer;

Masks Row::of(Transport transport) const {
  switch (transport) {
    case Transport::rc: return rc;
    case Transport::uc: return uc;
    case Transport::ud: return ud;
    case Transport::xrc_send: return {rc.required & ~kResponderPart, rc.optional & ~kResponderPart};
    case Transport::xrc_recv: return {rc.required & ~kRequesterPart, rc.optional & ~kRequesterPart};
    case Transport::raw: break;
  }
  return raw;
}

Transition check(const Masks& masks, std::uint32_t mask) {
  const auto given = mask & ~kState;
  if ((given & masks.required) != masks.required) return Transition::missing_attribute;
  if ((given & ~(masks.required | masks.optional)) != 0) return Transition::extra_attribute;
  return Transition::ok;
}

}  // namespace

Transition check_transition(Transport transport, QpState from, QpState to, std::uint32_t mask) {
  if (to > error) return Transition::not_allowed;
  if (to == reset || to == error) return check({0, 0}, mask);
  // The handling of received frames may be changed at any time.
  const bool hears = from == rtr || from == rts || from == sqd;
  if (transport == Transport::raw && hears && from == to && (mask & ~kState) == kStripVlan) return Transition::ok;
  for (const auto& row : kTransitions) {
    if (row.from != from || row.to != to) continue;
    if (is_reliable(transport) && from == sqe) return Transition::not_allowed;
    return check(row.of(transport), mask);
  }
  return Transition::not_allowed;
}

}  // namespace rnicsim::roce
