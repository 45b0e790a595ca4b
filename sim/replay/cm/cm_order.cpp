// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/cm/cm_order.h"

#include <algorithm>
#include <variant>

#include "sim/replay/cm/cm_names.h"

namespace rnicsim::sim::replay {
namespace {

template <class M>
bool is(const CmMessage& message) {
  return std::holds_alternative<M>(message.envelope.message);
}

bool same_conversation(const CmMessage& came, const CmMessage& sent) {
  const auto agree = [](std::uint32_t a, std::uint32_t b) { return a != 0 && a == b; };
  const auto& a = came.envelope.message;
  const auto& b = sent.envelope.message;
  return came.peer == sent.peer && (agree(other_id(a), own_id(b)) || agree(own_id(a), other_id(b)));
}

// True: a manager that has received `came` does not send `sent` any more.
bool ends(const CmMessage& came, const CmMessage& sent) {
  if (!same_conversation(came, sent)) return false;
  const bool disconnects = is<cm::DisconnectRequest>(sent);
  const bool replies = is<cm::ConnectReply>(sent) || is<cm::ReadyToUse>(sent);
  if (is<cm::DisconnectRequest>(came)) return disconnects || replies;
  if (is<cm::DisconnectReply>(came) && is<cm::DisconnectReply>(sent)) return true;
  if (is<cm::ConnectReject>(came) && disconnects) return true;
  if (came.envelope.transaction_id != sent.envelope.transaction_id) return false;
  if (is<cm::ConnectReject>(came)) return is<cm::ConnectRequest>(sent) || replies;
  if (is<cm::ConnectReply>(came)) return is<cm::ConnectRequest>(sent);
  if (is<cm::ReadyToUse>(came)) return is<cm::ConnectReply>(sent);
  if (is<cm::DisconnectReply>(came)) return disconnects;
  return is<cm::ServiceIdReply>(came) && is<cm::ServiceIdRequest>(sent);
}

}  // namespace

CmTraffic as_acted_upon(CmTraffic traffic) {
  auto& messages = traffic.messages;
  for (auto came = messages.rbegin(); came != messages.rend(); ++came) {
    if (came->sent) continue;
    const auto first = came.base() - 1;
    auto behind = first;
    for (auto each = first + 1; each != messages.end() && each->time - first->time <= kReaction; ++each)
      if (each->sent && ends(*first, *each)) behind = each;
    if (behind == first) continue;
    const auto time = behind->time;
    std::rotate(first, first + 1, behind + 1);
    behind->time = time;
  }
  return traffic;
}

}  // namespace rnicsim::sim::replay
