// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/cm/cm_foresight.h"

#include <algorithm>

#include "sim/replay/cm/cm_names.h"

namespace rnicsim::sim::replay {
namespace {

// First message after `frame` for which `suits` is true; nullptr: none.
template <class Suits>
const CmMessage* first_behind(const std::vector<const CmMessage*>& messages, std::uint32_t frame, Suits&& suits) {
  const auto from = std::ranges::upper_bound(messages, frame, {}, &CmMessage::frame);
  const auto found = std::find_if(from, messages.end(), suits);
  return found != messages.end() ? *found : nullptr;
}

}  // namespace

Duration manager_time(Duration captured) { return {captured.ps + captured.ps / 20}; }

CmForesight::CmForesight(const CmTraffic& traffic) {
  bool delay_known = false;
  for (const auto& message : traffic.messages) {
    if (!message.sent) continue;
    const auto& envelope = message.envelope;
    by_other_id_[{message.peer, other_id(envelope.message)}].push_back(&message);
    by_transaction_[{message.peer, envelope.transaction_id}].push_back(&message);
    const auto* request = std::get_if<cm::ConnectRequest>(&envelope.message);
    const auto* reply = std::get_if<cm::ConnectReply>(&envelope.message);
    if (params_.ca_guid == 0 && request != nullptr) params_.ca_guid = request->local_ca_guid;
    if (params_.ca_guid == 0 && reply != nullptr) params_.ca_guid = reply->local_ca_guid;
    if (reply != nullptr && !std::exchange(delay_known, true)) params_.ack_delay = reply->target_ack_delay;
  }
}

template <class Suits>
const CmMessage* CmForesight::first_answer(const CmMessage& received, Suits&& suits) const {
  const CmMessage* first = nullptr;
  const auto look = [&](const auto& index, auto key) {
    const auto messages = index.find({received.peer, key});
    if (messages == index.end()) return;
    const auto* found = first_behind(messages->second, received.frame,
                                     [&](const CmMessage* each) { return suits(each->envelope.message); });
    if (found != nullptr && (first == nullptr || found->frame < first->frame)) first = found;
  };
  look(by_other_id_, own_id(received.envelope.message));
  look(by_transaction_, received.envelope.transaction_id);
  return first;
}

bool CmForesight::refuses(const CmMessage& request) const {
  if (std::holds_alternative<cm::ServiceIdRequest>(request.envelope.message)) {
    const auto* answer = first_answer(
        request, [](const cm::Message& message) { return std::holds_alternative<cm::ServiceIdReply>(message); });
    return answer != nullptr &&
           std::get<cm::ServiceIdReply>(answer->envelope.message).status == cm::ServiceIdStatus::not_supported;
  }
  const auto* answer = first_answer(request, [](const cm::Message& message) {
    return std::holds_alternative<cm::ConnectReply>(message) || std::holds_alternative<cm::ConnectReject>(message);
  });
  const auto* reject = answer != nullptr ? std::get_if<cm::ConnectReject>(&answer->envelope.message) : nullptr;
  return reject != nullptr && reject->reason == cm::RejectReason::invalid_service_id;
}

std::optional<cm::TimeCode> CmForesight::promises(const CmMessage& received) const {
  const bool reply = std::holds_alternative<cm::ConnectReply>(received.envelope.message);
  const auto subject = reply ? cm::Subject::reply : cm::Subject::request;
  const auto* answer = first_answer(received, [&](const cm::Message& message) {
    const auto* receipt = std::get_if<cm::MessageReceiptAck>(&message);
    return receipt != nullptr && receipt->subject == subject;
  });
  if (answer == nullptr) return std::nullopt;
  return std::get<cm::MessageReceiptAck>(answer->envelope.message).service_timeout;
}

CmForesight::Patience CmForesight::patience(const CmMessage& request) const {
  constexpr cm::TimeCode kLongest = 31;
  Patience patience{.response_timeout = kLongest, .retries = 0};
  auto last = request.time;
  for (const auto* again : by_transaction_.at({request.peer, request.envelope.transaction_id})) {
    if (again->frame <= request.frame || again->envelope.message != request.envelope.message) continue;
    const auto waited = manager_time(again->time) - manager_time(last);
    while (patience.response_timeout > 0 && waited < cm::duration_of(patience.response_timeout))
      --patience.response_timeout;
    if (patience.retries < 0xff) ++patience.retries;
    last = again->time;
  }
  return patience;
}

}  // namespace rnicsim::sim::replay
