// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/cm/cm_host.h"

#include <algorithm>
#include <array>

#include "sim/replay/cm/cm_order.h"

namespace rnicsim::sim::replay {
namespace {

using cm::State;

// True: the reason is found by a manager itself; no host gives it.
bool is_managers(cm::RejectReason reason) {
  using enum cm::RejectReason;
  return reason == invalid_service_id || reason == stale_connection || reason == invalid_gid ||
         reason == invalid_communication_id || reason == invalid_communication_instance;
}

// Packet life time from which the manager computes this local ACK timeout; 0: none does.
cm::TimeCode life_time_for(cm::TimeCode ack_timeout, cm::TimeCode ack_delay) {
  for (cm::TimeCode life_time = 0; life_time < 32; ++life_time)
    if (cm::ack_timeout_of(ack_delay, life_time) == ack_timeout) return life_time;
  return 0;
}

cm::ConnectParams params_of(const cm::ConnectRequest& request, cm::TimeCode ack_delay) {
  return {.service_id = request.service_id,
          .path = request.primary,
          .packet_life_time = life_time_for(request.primary.local_ack_timeout, ack_delay),
          .path_mtu = request.path_mtu,
          .pkey = request.pkey,
          .transport = request.transport,
          .qpn = request.local_qpn,
          .starting_psn = request.starting_psn,
          .responder_resources = request.responder_resources,
          .initiator_depth = request.initiator_depth,
          .flow_control = request.end_to_end_flow_control,
          .retry_count = request.retry_count,
          .rnr_retry_count = request.rnr_retry_count,
          .srq = request.srq,
          .response_timeout = request.remote_response_timeout,
          .max_retries = request.max_cm_retries,
          .private_data = request.private_data};
}

}  // namespace

CmHost::CmHost(const CmTraffic& traffic, const roce::Gid& address)
    : address_(address), end_(traffic.end), foresight_(traffic), manager_(foresight_.params()) {}

// --- Inputs.

void CmHost::advance(Duration captured) {
  now_ = std::max(now_, manager_time(captured));
  manager_.advance(now_);
  take_messages(nullptr, true);
  take_events(nullptr);
}

void CmHost::receive(const CmMessage& message) {
  if (const auto* request = std::get_if<cm::ConnectRequest>(&message.envelope.message))
    listen_as_foreseen(message, request->service_id);
  if (const auto* request = std::get_if<cm::ServiceIdRequest>(&message.envelope.message))
    listen_as_foreseen(message, request->service_id);
  manager_.receive({.local = address_, .remote = message.peer}, names_.in_ours(message.envelope));
  last_words_[{message.peer, own_id(message.envelope.message)}] = &message;
  take_messages(&message, false);
  take_events(&message);
}

bool CmHost::act(const CmMessage& message) {
  const bool acted = std::visit([&](const auto& each) { return decide(message, each); }, message.envelope.message);
  take_messages(nullptr, false);
  take_events(nullptr);
  return acted;
}

void CmHost::acknowledged(const CmMessage& receipt) {
  const auto id = meant(receipt, {State::request_received, State::request_acknowledged, State::reply_received});
  if (!id) return;
  if (!names_.has(*id)) names_.bind(own_id(receipt.envelope.message), *id);
  acknowledged_.insert(*id);
}

void CmHost::finish() {
  for (const auto id : live_) {
    const auto* connection = manager_.find(id);
    const auto cause = causes_.find(id);
    if (connection == nullptr || cause == causes_.end() || acknowledged_.contains(id) || is_open(*cause->second))
      continue;
    switch (connection->state) {
      case State::request_received:
      case State::request_acknowledged:
      case State::service_request_received: unanswered_.push_back(cause->second); break;
      case State::reply_received: manager_.ready(id); break;
      case State::disconnect_received: manager_.confirm_disconnect(id); break;
      default: break;
    }
  }
  take_messages(nullptr, false);
}

// True: the request came so close to the capture's end that the answer may lie after it, and the peer's later messages
// do not show an answer.
bool CmHost::is_open(const CmMessage& request) const {
  const auto& words = last_words_.at({request.peer, own_id(request.envelope.message)})->envelope.message;
  return end_ - request.time <= kReaction && words.index() == request.envelope.message.index();
}

std::optional<Duration> CmHost::until_again(const CmMessage& message) const {
  const auto id = names_.ours(own_id(message.envelope.message));
  const auto* connection = id ? manager_.find(*id) : nullptr;
  const bool waits = connection != nullptr && connection->pending && connection->deadline &&
                     connection->pending->envelope.message.index() == message.envelope.message.index();
  return waits ? std::optional(*connection->deadline - now_) : std::nullopt;
}

// --- Decisions of the host.

bool CmHost::decide(const CmMessage& message, const cm::ConnectRequest& request) {
  const auto known = names_.ours(request.local_id);
  if (known && manager_.find(*known) != nullptr) return false;
  return manager_.connect(create(message), params_of(request, foresight_.params().ack_delay)) == 0;
}

bool CmHost::decide(const CmMessage& message, const cm::ConnectReject& reject) {
  if (reject.reason == cm::RejectReason::timeout) {
    const auto id = meant(message, {State::request_sent});
    if (id) retire(*id);
    return id.has_value();
  }
  const auto id = meant(message, {State::request_received, State::request_acknowledged, State::reply_received,
                                  State::request_sent, State::reply_sent});
  if (!id) return false;
  if (is_managers(reject.reason)) {
    manager_.forget(*id);
    live_.erase(*id);
    return false;
  }
  manager_.reject(*id, reject.reason, reject.private_data);
  retire(*id);
  return true;
}

bool CmHost::decide(const CmMessage& message, const cm::ConnectReply& reply) {
  const auto id = meant(message, {State::request_received, State::request_acknowledged});
  if (!id) return false;
  // A reply grants at most what the request asked for.
  const auto& asked = *manager_.find(*id);
  return manager_.reply(*id, {.qpn = reply.qpn(asked.transport),
                              .starting_psn = reply.starting_psn,
                              .responder_resources = std::min(reply.responder_resources, asked.responder_resources),
                              .initiator_depth = std::min(reply.initiator_depth, asked.initiator_depth),
                              .flow_control = reply.end_to_end_flow_control,
                              .rnr_retry_count = reply.rnr_retry_count,
                              .srq = reply.srq,
                              .private_data = reply.private_data}) == 0;
}

bool CmHost::decide(const CmMessage& message, const cm::ReadyToUse& ready) {
  const auto id = meant(message, {State::reply_received});
  return id && manager_.ready(*id, ready.private_data) == 0;
}

bool CmHost::decide(const CmMessage& message, const cm::DisconnectRequest&) {
  const auto id = meant(message, {State::established, State::reply_sent, State::reply_received});
  if (!id) return false;
  by_transaction_[{message.peer, message.envelope.transaction_id}] = *id;
  // A port that disconnects considers the connection established: by data before the RTU, or by its own RTU.
  if (manager_.find(*id)->state == State::reply_sent) manager_.establish(*id);
  if (manager_.find(*id)->state == State::reply_received) manager_.ready(*id);
  return manager_.disconnect(*id) == 0;
}

bool CmHost::decide(const CmMessage& message, const cm::DisconnectReply&) {
  const auto id = meant(message, {State::disconnect_received});
  return id && manager_.confirm_disconnect(*id) == 0;
}

bool CmHost::decide(const CmMessage& message, const cm::ServiceIdRequest& request) {
  const auto known = names_.ours(request.request_id);
  if (known && manager_.find(*known) != nullptr) return false;
  const auto patience = foresight_.patience(message);
  return manager_.resolve_service(create(message), {.service_id = request.service_id,
                                                    .route = {.local = address_, .remote = message.peer},
                                                    .pkey = request.pkey,
                                                    .response_timeout = patience.response_timeout,
                                                    .max_retries = patience.retries,
                                                    .private_data = request.private_data}) == 0;
}

bool CmHost::decide(const CmMessage& message, const cm::ServiceIdReply& reply) {
  const auto id = meant(message, {State::service_request_received});
  if (!id) return false;
  manager_.answer_service(*id, reply.status, reply.qpn, reply.qkey, reply.private_data);
  retire(*id);
  return true;
}

// --- Connections.

std::optional<cm::ConnectionId> CmHost::meant(const CmMessage& message, std::initializer_list<cm::State> states) const {
  const auto& envelope = message.envelope;
  std::array<std::optional<Id>, 3> named{names_.ours(own_id(envelope.message))};
  if (const auto id = by_peer_.find({message.peer, other_id(envelope.message)}); id != by_peer_.end())
    named[1] = id->second;
  if (const auto id = by_transaction_.find({message.peer, envelope.transaction_id}); id != by_transaction_.end())
    named[2] = id->second;
  std::optional<Id> best;
  std::ptrdiff_t most = 0;
  for (const auto& id : named) {
    const auto* connection = id ? manager_.find(*id) : nullptr;
    if (connection == nullptr || connection->route.remote != message.peer ||
        std::ranges::find(states, connection->state) == states.end())
      continue;
    if (const auto votes = std::ranges::count(named, id); votes > most) {
      best = id;
      most = votes;
    }
  }
  return best;
}

cm::ConnectionId CmHost::create(const CmMessage& message) {
  const auto id = manager_.create();
  live_.insert(id);
  names_.bind(own_id(message.envelope.message), id);
  by_transaction_[{message.peer, message.envelope.transaction_id}] = id;
  return id;
}

void CmHost::retire(Id id) {
  manager_.destroy(id);
  live_.erase(id);
}

void CmHost::listen_as_foreseen(const CmMessage& request, std::uint64_t service_id) {
  if (foresight_.refuses(request))
    manager_.unlisten(service_id);
  else
    manager_.listen(service_id);
}

void CmHost::promise_as_foreseen(Id id, const CmMessage& received) {
  if (const auto timeout = foresight_.promises(received)) manager_.promise(id, *timeout);
}

void CmHost::take_events(const CmMessage* cause) {
  using enum cm::EventKind;
  while (const auto event = manager_.next_event()) {
    if (cause != nullptr) causes_[event->id] = cause;
    switch (event->kind) {
      case request_received:
      case reply_received:
      case service_requested:
      case disconnect_requested:
        live_.insert(event->id);
        by_peer_[{cause->peer, own_id(cause->envelope.message)}] = event->id;
        by_transaction_[{cause->peer, cause->envelope.transaction_id}] = event->id;
        if (event->kind == request_received || event->kind == reply_received) promise_as_foreseen(event->id, *cause);
        break;
      case established:
      case disconnected: break;
      case request_failed:
      case reply_failed:
      case rejected:
      case timewait_over:
      case service_answered:
      case service_failed: retire(event->id); break;
    }
  }
  while (manager_.next_transition()) {}
}

void CmHost::take_messages(const CmMessage* cause, bool again) {
  while (auto message = manager_.next_message()) {
    const auto known = causes_.find(own_id(message->envelope.message));
    const auto* brought = cause != nullptr ? cause : known != causes_.end() ? known->second : nullptr;
    sent_.push_back(
        {brought != nullptr ? brought->frame : 0, again, message->route.remote, std::move(message->envelope)});
  }
}

}  // namespace rnicsim::sim::replay
