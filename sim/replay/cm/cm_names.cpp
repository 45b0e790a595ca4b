// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/cm/cm_names.h"

#include <type_traits>
#include <variant>

namespace rnicsim::sim::replay {

namespace {

// Communication IDs of a message.
template <class Id>
struct Ids {
  Id* own = nullptr;    // sender's communication ID; nullptr: the message has none
  Id* other = nullptr;  // receiver's communication ID
};

template <class Id, class Any>
Ids<Id> ids_of(Any& message) {
  return std::visit(
      [](auto& each) {
        using M = std::remove_cvref_t<decltype(each)>;
        Ids<Id> ids;
        if constexpr (requires { each.local_id; }) ids.own = &each.local_id;
        if constexpr (requires { each.remote_id; }) ids.other = &each.remote_id;
        if constexpr (std::is_same_v<M, cm::ServiceIdRequest>) ids.own = &each.request_id;
        if constexpr (std::is_same_v<M, cm::ServiceIdReply>) ids.other = &each.request_id;
        return ids;
      },
      message);
}

}  // namespace

std::uint32_t own_id(const cm::Message& message) {
  const auto* id = ids_of<const std::uint32_t>(message).own;
  return id != nullptr ? *id : 0;
}

std::uint32_t other_id(const cm::Message& message) {
  const auto* id = ids_of<const std::uint32_t>(message).other;
  return id != nullptr ? *id : 0;
}

bool begins_transaction(const cm::Message& message) {
  return std::holds_alternative<cm::ConnectRequest>(message) ||
         std::holds_alternative<cm::DisconnectRequest>(message) ||
         std::holds_alternative<cm::ServiceIdRequest>(message) ||
         std::holds_alternative<cm::LoadAlternatePath>(message);
}

CmNames::Exchange CmNames::exchange_of(const cm::Message& message) {
  using enum Exchange;
  constexpr Exchange kOfEach[] = {connect,    connect, connect, connect, connect, disconnect,
                                  disconnect, service, service, path,    path};
  static_assert(std::size(kOfEach) == std::variant_size_v<cm::Message>);
  return kOfEach[message.index()];
}

const CmNames::Transaction* CmNames::find(cm::ConnectionId id, const cm::Message& message) const {
  const auto found = transactions_.find({id, exchange_of(message)});
  return found != transactions_.end() ? &found->second : nullptr;
}

std::optional<cm::ConnectionId> CmNames::ours(std::uint32_t theirs) const {
  const auto found = to_ours_.find(theirs);
  return found != to_ours_.end() ? std::optional(found->second) : std::nullopt;
}

void CmNames::bind(std::uint32_t theirs, cm::ConnectionId ours) {
  if (theirs == 0 || ours == 0) return;
  to_ours_[theirs] = ours;
  to_theirs_[ours] = theirs;
}

void CmNames::learn(const cm::Envelope& ours, const cm::Envelope& theirs) {
  const auto id = own_id(ours.message);
  if (id != 0 && !has(id)) bind(own_id(theirs.message), id);
  if (begins_transaction(ours.message))
    transactions_.try_emplace({id, exchange_of(ours.message)}, ours.transaction_id, theirs.transaction_id);
}

cm::Envelope CmNames::in_theirs(cm::Envelope ours) const {
  auto* const id = ids_of<std::uint32_t>(ours.message).own;
  if (id == nullptr) return ours;
  if (const auto* transaction = find(*id, ours.message); transaction && transaction->ours == ours.transaction_id)
    ours.transaction_id = transaction->theirs;
  if (const auto found = to_theirs_.find(*id); found != to_theirs_.end()) *id = found->second;
  return ours;
}

cm::Envelope CmNames::in_ours(cm::Envelope peers) {
  auto* const id = ids_of<std::uint32_t>(peers.message).other;
  if (id == nullptr || *id == 0) return peers;
  const auto theirs = *id;
  if (const auto known = ours(theirs)) {
    *id = *known;
    if (const auto* transaction = find(*known, peers.message);
        transaction && transaction->theirs == peers.transaction_id)
      peers.transaction_id = transaction->ours;
    return peers;
  }
  auto& stranger = strangers_[theirs];
  if (stranger == 0) {
    stranger = next_stranger_--;
    to_theirs_[stranger] = theirs;
  }
  *id = stranger;
  return peers;
}

}  // namespace rnicsim::sim::replay
