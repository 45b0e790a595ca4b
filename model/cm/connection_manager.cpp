// SPDX-License-Identifier: Apache-2.0
#include "model/cm/connection_manager.h"

#include <algorithm>
#include <cerrno>

#include "model/cm/private_data.h"

namespace rnicsim::cm {
namespace {

bool is_before_reply(State state) { return state == State::request_received || state == State::request_acknowledged; }

}  // namespace

TimeCode ack_timeout_of(TimeCode ack_delay, TimeCode packet_life_time) {
  const unsigned there_and_back = packet_life_time + 1u;
  const unsigned larger = std::max<unsigned>(there_and_back, ack_delay);
  const unsigned smaller = std::min<unsigned>(there_and_back, ack_delay);
  return TimeCode(std::min(31u, larger + (smaller + 1 >= larger ? 1 : 0)));
}

// --- Connections.

ConnectionId ConnectionManager::create() {
  ConnectionId id = 0;
  do {
    id = next_id_++ ^ params_.id_mask;
  } while (id == 0 || connections_.contains(id));
  connections_[id].id = id;
  return id;
}

const Connection* ConnectionManager::find(ConnectionId id) const {
  const auto found = connections_.find(id);
  return found != connections_.end() && !found->second.orphan ? &found->second : nullptr;
}

Connection* ConnectionManager::lookup(ConnectionId id) {
  const auto found = connections_.find(id);
  return found != connections_.end() ? &found->second : nullptr;
}

std::uint64_t ConnectionManager::guid_of(const Gid& local) const {
  const auto other = params_.other_guids.find(local);
  return other != params_.other_guids.end() ? other->second : params_.ca_guid;
}

Connection* ConnectionManager::match(std::uint32_t local, std::uint32_t remote) {
  Connection* connection = lookup(local);
  return connection != nullptr && connection->peer.id == remote ? connection : nullptr;
}

void ConnectionManager::destroy(ConnectionId id) {
  Connection* connection = lookup(id);
  if (connection == nullptr || connection->orphan) return;
  switch (connection->state) {
    case State::request_sent: {
      const std::uint64_t ca_guid = guid_of(connection->route.local);
      std::array<std::uint8_t, 8> guid;
      for (int i = 0; i < 8; ++i) guid[std::size_t(i)] = std::uint8_t(ca_guid >> (56 - 8 * i));
      ConnectReject message{.local_id = id,
                            .subject = Subject::request,
                            .information_length = guid.size(),
                            .reason = RejectReason::timeout};
      std::ranges::copy(guid, message.information.begin());
      send(connection->route, {connection->transaction_id, message});
      break;
    }
    case State::request_received:
    case State::request_acknowledged:
    case State::reply_sent:
    case State::reply_received: reject(id, RejectReason::consumer); break;
    case State::established: disconnect(id); [[fallthrough]];
    case State::disconnect_sent: enter_timewait(*connection); break;
    case State::disconnect_received: confirm_disconnect(id); break;
    case State::service_request_received: answer_service(id, ServiceIdStatus::rejected, 0, 0); break;
    case State::idle:
    case State::timewait:
    case State::service_request_sent: break;
  }
  std::erase_if(events_, [&](const Event& event) { return event.id == id; });
  if (connection->state == State::timewait) {
    connection->orphan = true;
  } else {
    erase(id);
  }
}

void ConnectionManager::forget(ConnectionId id) {
  if (find(id) != nullptr) erase(id);
}

void ConnectionManager::erase(ConnectionId id) {
  const auto found = connections_.find(id);
  reset(found->second);
  connections_.erase(found);
}

bool ConnectionManager::enter_peer(Connection& connection, const Peer& peer) {
  connection.peer = peer;
  const PeerId qp{peer.ca_guid, peer.qpn};
  if (by_remote_qpn_.contains(qp)) return false;
  by_remote_qpn_[qp] = connection.id;
  by_remote_id_[{peer.ca_guid, peer.id}] = connection.id;
  connection.peer_known = true;
  return true;
}

void ConnectionManager::forget_peer(Connection& connection) {
  if (!std::exchange(connection.peer_known, false)) return;
  forget_peer_qp(connection);
  by_remote_id_.erase({connection.peer.ca_guid, connection.peer.id});
}

void ConnectionManager::forget_peer_qp(const Connection& connection) {
  const auto known = by_remote_qpn_.find({connection.peer.ca_guid, connection.peer.qpn});
  if (known != by_remote_qpn_.end() && known->second == connection.id) by_remote_qpn_.erase(known);
}

void ConnectionManager::move(Connection& connection, State to) {
  if (connection.state == to) return;
  transitions_.push_back({connection.id, connection.state, to});
  connection.state = to;
}

void ConnectionManager::reset(Connection& connection) {
  answered(connection);
  forget_peer(connection);
  if (connection.state == State::service_request_received)
    service_requests_.erase({connection.route.remote, connection.peer.id});
  move(connection, State::idle);
}

void ConnectionManager::enter_timewait(Connection& connection) {
  connection.pending.reset();
  // The peer's QP may belong to another connection now; its communication ID stays known, for retransmissions.
  forget_peer_qp(connection);
  move(connection, State::timewait);
  arm(connection, now_ + duration_of(connection.ack_timeout));
}

// --- Requests of the consumer.

int ConnectionManager::connect(ConnectionId id, const ConnectParams& params) {
  Connection* connection = lookup(id);
  ConnectRequest message;
  if (connection == nullptr || connection->state != State::idle || !assign(message.private_data, params.private_data))
    return EINVAL;
  message.local_id = id;
  message.service_id = params.service_id;
  message.local_ca_guid = guid_of(params.path.local_gid);
  message.local_qpn = params.qpn;
  const bool extended = params.transport == TransportService::extended;
  // An XRC initiator QP answers no requests: its REQ has no responder resources and no retry count.
  message.responder_resources = extended ? std::uint8_t{0} : params.responder_resources;
  message.initiator_depth = params.initiator_depth;
  message.remote_response_timeout = params.response_timeout;
  message.transport = params.transport;
  message.end_to_end_flow_control = params.flow_control;
  message.starting_psn = params.starting_psn;
  message.local_response_timeout = params.response_timeout;
  message.retry_count = extended ? std::uint8_t{0} : params.retry_count;
  message.pkey = params.pkey;
  message.path_mtu = params.path_mtu;
  message.rnr_retry_count = extended ? std::uint8_t{0} : params.rnr_retry_count;
  message.max_cm_retries = params.max_retries;
  message.srq = params.srq && !extended;
  message.extended_transport = extended ? kExtendedXrc : 0;
  message.primary = params.path;
  message.primary.local_ack_timeout = ack_timeout_of(params_.ack_delay, params.packet_life_time);

  connection->service_id = params.service_id;
  connection->route = {params.path.local_gid,     params.path.remote_gid, params.path.flow_label,
                       params.path.traffic_class, params.path.hop_limit,  params.path.service_level};
  connection->transport = params.transport;
  connection->local_qpn = params.qpn;
  connection->receive_psn = params.starting_psn;
  connection->pkey = params.pkey;
  connection->path_mtu = params.path_mtu;
  connection->responder_resources = params.responder_resources;
  connection->initiator_depth = params.initiator_depth;
  connection->retry_count = params.retry_count;
  connection->ack_timeout = message.primary.local_ack_timeout;
  connection->response_timeout = 2 * duration_of(params.packet_life_time) + duration_of(params.response_timeout);
  connection->max_retries = params.max_retries;
  connection->transaction_id = new_transaction(*connection);
  move(*connection, State::request_sent);
  send_until_answered(*connection, {connection->transaction_id, message});
  return 0;
}

int ConnectionManager::reply(ConnectionId id, const ReplyParams& params) {
  Connection* connection = lookup(id);
  ConnectReply message;
  if (connection == nullptr || !is_before_reply(connection->state) ||
      !assign(message.private_data, params.private_data))
    return EINVAL;
  message.local_id = id;
  message.remote_id = connection->peer.id;
  const bool extended = connection->transport == TransportService::extended;
  (extended ? message.local_eecn : message.local_qpn) = params.qpn;
  message.starting_psn = params.starting_psn;
  message.responder_resources = params.responder_resources;
  message.initiator_depth = extended ? std::uint8_t{0} : params.initiator_depth;
  message.target_ack_delay = params_.ack_delay;
  message.end_to_end_flow_control = params.flow_control && !extended;
  message.rnr_retry_count = params.rnr_retry_count;
  message.srq = params.srq || extended;
  message.local_ca_guid = guid_of(connection->route.local);
  connection->local_qpn = params.qpn;
  connection->receive_psn = params.starting_psn;
  connection->responder_resources = params.responder_resources;
  connection->initiator_depth = params.initiator_depth;
  move(*connection, State::reply_sent);
  send_until_answered(*connection, {connection->transaction_id, message});
  return 0;
}

int ConnectionManager::ready(ConnectionId id, std::span<const std::uint8_t> private_data) {
  Connection* connection = lookup(id);
  ReadyToUse message;
  if (connection == nullptr || connection->state != State::reply_received ||
      !assign(message.private_data, private_data))
    return EINVAL;
  message.local_id = id;
  message.remote_id = connection->peer.id;
  move(*connection, State::established);
  connection->last_answer = Envelope{connection->transaction_id, message};
  send(connection->route, *connection->last_answer);
  return 0;
}

int ConnectionManager::promise(ConnectionId id, TimeCode service_timeout) {
  Connection* connection = lookup(id);
  if (connection == nullptr) return EINVAL;
  MessageReceiptAck message{.local_id = id, .remote_id = connection->peer.id, .service_timeout = service_timeout};
  switch (connection->state) {
    case State::request_received:
      message.subject = Subject::request;
      move(*connection, State::request_acknowledged);
      break;
    case State::reply_received: message.subject = Subject::reply; break;
    default: return EINVAL;
  }
  connection->last_answer = Envelope{connection->transaction_id, message};
  return 0;
}

int ConnectionManager::reject(ConnectionId id, RejectReason reason, std::span<const std::uint8_t> private_data) {
  Connection* connection = lookup(id);
  ConnectReject message{.local_id = id, .reason = reason};
  if (connection == nullptr || !assign(message.private_data, private_data)) return EINVAL;
  const State before = connection->state;
  message.remote_id = connection->peer.id;
  switch (before) {
    case State::request_received:
    case State::request_acknowledged: message.subject = Subject::request; break;
    case State::reply_received: message.subject = Subject::reply; break;
    case State::request_sent:
    case State::reply_sent: message.subject = Subject::other; break;
    default: return EINVAL;
  }
  send(connection->route, {connection->transaction_id, message});
  if (before == State::reply_sent) {
    enter_timewait(*connection);
  } else {
    reset(*connection);
  }
  return 0;
}

int ConnectionManager::disconnect(ConnectionId id) {
  Connection* connection = lookup(id);
  if (connection == nullptr || connection->state != State::established) return EINVAL;
  const DisconnectRequest message{.local_id = id, .remote_id = connection->peer.id, .remote_qpn = connection->peer.qpn};
  move(*connection, State::disconnect_sent);
  send_until_answered(*connection, {new_transaction(*connection), message});
  return 0;
}

int ConnectionManager::confirm_disconnect(ConnectionId id) {
  Connection* connection = lookup(id);
  if (connection == nullptr || connection->state != State::disconnect_received) return EINVAL;
  const DisconnectReply message{.local_id = id, .remote_id = connection->peer.id};
  connection->last_answer = Envelope{connection->transaction_id, message};
  send(connection->route, *connection->last_answer);
  enter_timewait(*connection);
  return 0;
}

int ConnectionManager::establish(ConnectionId id) {
  Connection* connection = lookup(id);
  if (connection == nullptr) return EINVAL;
  if (connection->state == State::established) return EISCONN;
  if (connection->state != State::reply_sent) return EINVAL;
  answered(*connection);
  move(*connection, State::established);
  tell(EventKind::established, *connection);
  return 0;
}

int ConnectionManager::resolve_service(ConnectionId id, const ServiceParams& params) {
  Connection* connection = lookup(id);
  ServiceIdRequest message;
  if (connection == nullptr || connection->state != State::idle || !assign(message.private_data, params.private_data))
    return EINVAL;
  message.request_id = id;
  message.pkey = params.pkey;
  message.service_id = params.service_id;
  connection->service_id = params.service_id;
  connection->route = params.route;
  connection->pkey = params.pkey;
  connection->response_timeout = duration_of(params.response_timeout);
  connection->max_retries = params.max_retries;
  connection->transaction_id = new_transaction(*connection);
  move(*connection, State::service_request_sent);
  send_until_answered(*connection, {connection->transaction_id, message});
  return 0;
}

int ConnectionManager::answer_service(ConnectionId id, ServiceIdStatus status, std::uint32_t qpn, std::uint32_t qkey,
                                      std::span<const std::uint8_t> private_data) {
  Connection* connection = lookup(id);
  ServiceIdReply message;
  if (connection == nullptr || connection->state != State::service_request_received ||
      !assign(message.private_data, private_data))
    return EINVAL;
  message.request_id = connection->peer.id;
  message.status = status;
  message.service_id = connection->service_id;
  if (status == ServiceIdStatus::valid) {
    message.qpn = qpn;
    message.qkey = qkey;
  }
  send(connection->route, {connection->transaction_id, message});
  reset(*connection);
  return 0;
}

// --- Timeouts.

std::optional<Duration> ConnectionManager::next_deadline() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

void ConnectionManager::advance(Duration now) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    now_ = deadlines_.begin()->first;
    expire(*lookup(deadlines_.begin()->second));
  }
  now_ = now;
}

void ConnectionManager::arm(Connection& connection, std::optional<Duration> deadline) {
  if (connection.deadline) deadlines_.erase({*connection.deadline, connection.id});
  connection.deadline = deadline;
  if (deadline) deadlines_.insert({*deadline, connection.id});
}

void ConnectionManager::expire(Connection& connection) {
  arm(connection, std::nullopt);
  if (connection.pending && connection.pending->retries > 0) {
    --connection.pending->retries;
    ++counters_.repeated;
    send(connection.route, connection.pending->envelope);
    arm(connection, now_ + connection.pending->interval);
  } else if (connection.pending) {
    give_up(connection);
  } else {
    const bool orphan = connection.orphan;
    tell(EventKind::timewait_over, connection);
    reset(connection);
    if (orphan) erase(connection.id);
  }
}

void ConnectionManager::give_up(Connection& connection) {
  switch (connection.state) {
    case State::request_sent: reset(connection); return tell(EventKind::request_failed, connection);
    case State::reply_sent: reset(connection); return tell(EventKind::reply_failed, connection);
    case State::service_request_sent: reset(connection); return tell(EventKind::service_failed, connection);
    default: enter_timewait(connection); return tell(EventKind::disconnected, connection);
  }
}

// --- Messages and events.

std::uint64_t ConnectionManager::new_transaction(const Connection& connection) {
  constexpr std::uint64_t kAgent = 2ull << 32;
  return kAgent | connection.id;
}

void ConnectionManager::send(const Route& route, const Envelope& envelope) {
  ++counters_.sent;
  outgoing_.push_back({route, envelope});
}

void ConnectionManager::send_until_answered(Connection& connection, Envelope envelope) {
  send(connection.route, envelope);
  connection.pending = Pending{std::move(envelope), connection.response_timeout, connection.max_retries};
  arm(connection, now_ + connection.response_timeout);
}

void ConnectionManager::answered(Connection& connection) {
  connection.pending.reset();
  arm(connection, std::nullopt);
}

void ConnectionManager::tell(EventKind kind, const Connection& connection, const Message& message) {
  if (!connection.orphan) events_.push_back({kind, connection.id, message});
}

std::optional<Outgoing> ConnectionManager::next_message() {
  if (outgoing_.empty()) return std::nullopt;
  Outgoing message = std::move(outgoing_.front());
  outgoing_.pop_front();
  return message;
}

std::optional<Transition> ConnectionManager::next_transition() {
  if (transitions_.empty()) return std::nullopt;
  const Transition transition = transitions_.front();
  transitions_.pop_front();
  return transition;
}

std::optional<Event> ConnectionManager::next_event() {
  if (events_.empty()) return std::nullopt;
  Event event = std::move(events_.front());
  events_.pop_front();
  return event;
}

}  // namespace rnicsim::cm
