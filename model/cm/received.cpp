// SPDX-License-Identifier: Apache-2.0
// Handling of each message that the connection manager receives (IBTA vol 1, 12.9.7 and 12.9.8).
#include "model/cm/connection_manager.h"

namespace rnicsim::cm {
namespace {

// The route as this side sees it: the sender's local GID is remote here.
Route route_of(const RequestedPath& path) {
  return {path.remote_gid, path.local_gid, path.flow_label, path.traffic_class, path.hop_limit, path.service_level};
}

std::uint64_t guid_in(const ConnectReject& message) {
  std::uint64_t guid = 0;
  for (int i = 0; i < 8; ++i) guid = guid << 8 | message.information[std::size_t(i)];
  return guid;
}

}  // namespace

void ConnectionManager::receive(const Route& route, const Envelope& envelope) {
  ++counters_.received;
  std::visit([&](const auto& message) { on(route, envelope, message); }, envelope.message);
}

// --- Connecting.

// True: a retransmitted REQ, whose sender has not received an answer yet. Sends the answer again.
bool ConnectionManager::is_repeated(const Route& route, const ConnectRequest& request) {
  const auto known = by_remote_id_.find({request.local_ca_guid, request.local_id});
  if (known == by_remote_id_.end()) return false;
  ++counters_.duplicates;
  Connection& connection = *lookup(known->second);
  if (connection.state == State::request_acknowledged) {
    send(connection.route, *connection.last_answer);
  } else if (connection.state == State::timewait) {
    reject_request(route, connection.transaction_id, request.local_id, RejectReason::stale_connection);
  }
  return true;
}

void ConnectionManager::on(const Route& route, const Envelope& envelope, const ConnectRequest& request) {
  if (is_repeated(route, request)) return;
  const auto stale = by_remote_qpn_.find({request.local_ca_guid, request.local_qpn});
  if (stale != by_remote_qpn_.end()) {
    ++counters_.stale;
    reject_request(route, envelope.transaction_id, request.local_id, RejectReason::stale_connection);
    disconnect(stale->second);
    return;
  }
  if (!services_.contains(request.service_id))
    return reject_request(route, envelope.transaction_id, request.local_id, RejectReason::invalid_service_id);
  // An answer would come from another GID than the REQ names.
  if (request.primary.remote_gid != route.local)
    return reject_request(route, envelope.transaction_id, request.local_id, RejectReason::invalid_gid);
  Connection& connection = connections_[create()];
  enter_peer(connection, {request.local_ca_guid, request.local_id, request.local_qpn});
  move(connection, State::request_received);
  connection.route = route_of(request.primary);
  connection.service_id = request.service_id;
  connection.transaction_id = envelope.transaction_id;
  connection.transport = request.transport;
  connection.send_psn = request.starting_psn;
  connection.pkey = request.pkey;
  connection.path_mtu = request.path_mtu;
  connection.responder_resources = request.initiator_depth;
  connection.initiator_depth = request.responder_resources;
  connection.retry_count = request.retry_count;
  connection.rnr_retry_count = request.rnr_retry_count;
  connection.ack_timeout = request.primary.local_ack_timeout;
  connection.response_timeout = duration_of(request.local_response_timeout);
  connection.max_retries = request.max_cm_retries;
  tell(EventKind::request_received, connection, request);
}

void ConnectionManager::on(const Route&, const Envelope&, const MessageReceiptAck& message) {
  Connection* connection = lookup(message.remote_id);
  const bool awaited = connection != nullptr && connection->pending &&
                       ((message.subject == Subject::request && connection->state == State::request_sent) ||
                        (message.subject == Subject::reply && connection->state == State::reply_sent));
  if (!awaited) {
    ++counters_.unexpected;
    return;
  }
  connection->pending->interval = duration_of(message.service_timeout) + duration_of(connection->ack_timeout);
  arm(*connection, now_ + connection->pending->interval);
}

void ConnectionManager::on(const Route& route, const Envelope& envelope, const ConnectReply& reply) {
  Connection* connection = lookup(reply.remote_id);
  if (connection != nullptr && connection->peer.id == reply.local_id && connection->last_answer &&
      (connection->state == State::reply_received || connection->state == State::established)) {
    ++counters_.duplicates;
    return send(connection->route, *connection->last_answer);
  }
  if (connection == nullptr || connection->state != State::request_sent) {
    ++counters_.unexpected;
    return;
  }
  answered(*connection);
  if (!enter_peer(*connection, {reply.local_ca_guid, reply.local_id, reply.qpn(connection->transport)})) {
    ++counters_.stale;
    // The peer needs both IDs to find its connection.
    send(route, {envelope.transaction_id, ConnectReject{.local_id = connection->id,
                                                        .remote_id = reply.local_id,
                                                        .subject = Subject::reply,
                                                        .reason = RejectReason::stale_connection}});
    reset(*connection);
    return tell(EventKind::request_failed, *connection);
  }
  move(*connection, State::reply_received);
  connection->send_psn = reply.starting_psn;
  // The REQ could only include this side's own ACK delay.
  connection->ack_timeout = ack_timeout_of(reply.target_ack_delay, TimeCode(connection->ack_timeout - 1));
  connection->responder_resources = reply.initiator_depth;
  connection->initiator_depth = reply.responder_resources;
  connection->rnr_retry_count = reply.rnr_retry_count;
  tell(EventKind::reply_received, *connection, reply);
}

void ConnectionManager::on(const Route&, const Envelope&, const ReadyToUse& message) {
  Connection* connection = match(message.remote_id, message.local_id);
  if (connection == nullptr || connection->state != State::reply_sent) {
    ++counters_.unexpected;
    return;
  }
  answered(*connection);
  move(*connection, State::established);
  tell(EventKind::established, *connection, message);
}

void ConnectionManager::on(const Route&, const Envelope&, const ConnectReject& message) {
  Connection* connection = nullptr;
  if (message.reason == RejectReason::timeout) {
    const auto known = by_remote_id_.find({guid_in(message), message.local_id});
    if (known != by_remote_id_.end()) connection = lookup(known->second);
  } else {
    // A peer that rejects the REQ is not known yet. Once the REQ was answered, a rejection of it no longer matches.
    connection = match(message.remote_id, message.subject == Subject::request ? 0 : message.local_id);
  }
  if (connection == nullptr) {
    ++counters_.unexpected;
    return;
  }
  switch (connection->state) {
    case State::request_sent:
    case State::reply_sent:
    case State::request_received:
    case State::request_acknowledged:
      answered(*connection);
      if (message.reason == RejectReason::stale_connection) {
        enter_timewait(*connection);
      } else {
        reset(*connection);
      }
      break;
    case State::reply_received:
    case State::established:
    case State::disconnect_sent: enter_timewait(*connection); break;
    default: ++counters_.unexpected; return;
  }
  tell(EventKind::rejected, *connection, message);
}

// --- Disconnecting.

void ConnectionManager::on(const Route& route, const Envelope& envelope, const DisconnectRequest& message) {
  Connection* connection = match(message.remote_id, message.local_id);
  if (connection == nullptr || connection->state == State::idle) {
    // The connection is unknown or idle here, and the peer does not know that yet.
    ++counters_.unexpected;
    return send(route, {envelope.transaction_id,
                        DisconnectReply{.local_id = message.remote_id, .remote_id = message.local_id}});
  }
  if (message.remote_qpn != connection->local_qpn) {
    ++counters_.unexpected;
    return;
  }
  switch (connection->state) {
    case State::reply_sent:
    case State::disconnect_sent: answered(*connection); break;
    case State::established: break;
    case State::timewait:
      ++counters_.duplicates;
      return send(
          route, {envelope.transaction_id, DisconnectReply{.local_id = connection->id, .remote_id = message.local_id}});
    case State::disconnect_received: ++counters_.duplicates; return;
    default: ++counters_.unexpected; return;
  }
  move(*connection, State::disconnect_received);
  connection->transaction_id = envelope.transaction_id;
  tell(EventKind::disconnect_requested, *connection, message);
}

void ConnectionManager::on(const Route&, const Envelope&, const DisconnectReply& message) {
  Connection* connection = match(message.remote_id, message.local_id);
  if (connection == nullptr ||
      (connection->state != State::disconnect_sent && connection->state != State::disconnect_received)) {
    ++counters_.unexpected;
    return;
  }
  enter_timewait(*connection);
  tell(EventKind::disconnected, *connection, message);
}

// --- Service IDs.

void ConnectionManager::on(const Route& route, const Envelope& envelope, const ServiceIdRequest& request) {
  if (service_requests_.contains({route.remote, request.request_id})) {
    ++counters_.duplicates;
    return;
  }
  if (!services_.contains(request.service_id))
    return send(route, {envelope.transaction_id, ServiceIdReply{.request_id = request.request_id,
                                                                .status = ServiceIdStatus::not_supported,
                                                                .service_id = request.service_id}});
  Connection& connection = connections_[create()];
  move(connection, State::service_request_received);
  connection.route = route;
  connection.peer.id = request.request_id;
  connection.service_id = request.service_id;
  connection.transaction_id = envelope.transaction_id;
  connection.pkey = request.pkey;
  service_requests_[{route.remote, request.request_id}] = connection.id;
  tell(EventKind::service_requested, connection, request);
}

void ConnectionManager::on(const Route&, const Envelope&, const ServiceIdReply& reply) {
  Connection* connection = lookup(reply.request_id);
  if (connection == nullptr || connection->state != State::service_request_sent) {
    ++counters_.unexpected;
    return;
  }
  reset(*connection);
  tell(EventKind::service_answered, *connection, reply);
}

// --- Alternate paths are not supported (12.9.9: the peer keeps its path).

void ConnectionManager::on(const Route& route, const Envelope& envelope, const LoadAlternatePath& message) {
  send(route, {envelope.transaction_id, AlternatePathResponse{.local_id = message.remote_id,
                                                              .remote_id = message.local_id,
                                                              .status = AlternatePathResponse::kNotSupported}});
}

void ConnectionManager::on(const Route&, const Envelope&, const AlternatePathResponse&) { ++counters_.unexpected; }

void ConnectionManager::reject_request(const Route& route, std::uint64_t transaction, std::uint32_t remote_id,
                                       RejectReason reason) {
  send(route, {transaction, ConnectReject{.remote_id = remote_id, .subject = Subject::request, .reason = reason}});
}

}  // namespace rnicsim::cm
