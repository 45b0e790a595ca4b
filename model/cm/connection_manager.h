// SPDX-License-Identifier: Apache-2.0
// Communication manager of a host (IBTA vol 1, chapter 12): connections from the REQ to the end of timewait, and
// service ID resolution. The caller supplies the time and transports messages: after each call it takes all messages
// and events from their queues.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "model/base/units.h"
#include "model/cm/connection.h"
#include "model/cm/messages.h"

namespace rnicsim::cm {

constexpr Duration duration_of(TimeCode code) { return {std::int64_t{4'096'000} << (code & 0x1f)}; }

// ACK timeout: the packet life time in both directions plus the peer CA's ACK delay, rounded up to a time code.
TimeCode ack_timeout_of(TimeCode ack_delay, TimeCode packet_life_time);

enum class EventKind : std::uint8_t {
  request_received,  // REQ; `id` is new
  request_failed,    // no answer
  reply_received,    // REP
  reply_failed,
  established,           // RTU, or data before the RTU
  rejected,              // REJ
  disconnect_requested,  // DREQ
  disconnected,          // DREP, or the peer did not answer
  timewait_over,
  service_requested,  // SIDR_REQ; `id` is new
  service_answered,   // SIDR_REP
  service_failed,
};

struct Event {
  EventKind kind;
  ConnectionId id;
  Message message{};  // message that caused the event, if any
};

// Change of a connection's state.
struct Transition {
  ConnectionId id;
  State from;
  State to;
};

struct Outgoing {
  Route route;
  Envelope envelope;
};

struct ConnectParams {
  std::uint64_t service_id = 0;
  RequestedPath path;  // local_ack_timeout is computed by connect()
  TimeCode packet_life_time = 0;
  std::uint8_t path_mtu = 0;
  std::uint16_t pkey = 0xffff;
  TransportService transport = TransportService::rc;
  std::uint32_t qpn = 0;
  std::uint32_t starting_psn = 0;
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  bool flow_control = false;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry_count = 0;
  bool srq = false;
  TimeCode response_timeout = 0;  // of the managers on both sides
  std::uint8_t max_retries = 0;
  std::span<const std::uint8_t> private_data;
};

struct ReplyParams {
  std::uint32_t qpn = 0;
  std::uint32_t starting_psn = 0;
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  bool flow_control = false;
  std::uint8_t rnr_retry_count = 0;
  bool srq = false;
  std::span<const std::uint8_t> private_data;
};

struct ServiceParams {
  std::uint64_t service_id = 0;
  Route route;
  std::uint16_t pkey = 0xffff;
  TimeCode response_timeout = 0;
  std::uint8_t max_retries = 0;
  std::span<const std::uint8_t> private_data;
};

struct ManagerCounters {
  std::uint64_t sent = 0;
  std::uint64_t repeated = 0;
  std::uint64_t received = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t unexpected = 0;  // no such connection, or not expected in its state
  std::uint64_t stale = 0;       // requests of a peer that forgot a connection which exists here
};

class ConnectionManager {
 public:
  struct Params {
    std::uint64_t ca_guid = 0;
    TimeCode ack_delay = 0;                      // local CA ACK delay
    std::uint32_t id_mask = 0;                   // communication IDs count up from 1, XORed with this mask
    std::map<Gid, std::uint64_t> other_guids{};  // GUIDs of the host's other CAs, by their GIDs
  };
  explicit ConnectionManager(const Params& params) : params_(params) {}

  // Executes everything due until `now`. Call this before each of the functions below.
  void advance(Duration now);
  std::optional<Duration> next_deadline() const;

  // A REQ or SIDR_REQ for the service becomes an event; requests for other services are rejected.
  void listen(std::uint64_t service_id) { services_.insert(service_id); }
  void unlisten(std::uint64_t service_id) { services_.erase(service_id); }

  ConnectionId create();
  // Notifies the peer as the connection's state requires.
  void destroy(ConnectionId id);
  // Drops the connection as if its REQ had never arrived; the peer may send it again.
  void forget(ConnectionId id);
  const Connection* find(ConnectionId id) const;

  // Each function returns 0, or EINVAL if the connection's state does not allow it or the private data are too long.
  int connect(ConnectionId id, const ConnectParams& params);
  int reply(ConnectionId id, const ReplyParams& params);
  int ready(ConnectionId id, std::span<const std::uint8_t> private_data = {});
  int reject(ConnectionId id, RejectReason reason, std::span<const std::uint8_t> private_data = {});
  // A peer that retransmits its REQ or REP gets an MRA with this service timeout from now on.
  int promise(ConnectionId id, TimeCode service_timeout);
  int disconnect(ConnectionId id);          // DREQ
  int confirm_disconnect(ConnectionId id);  // DREP
  int establish(ConnectionId id);           // data arrived before the RTU
  int resolve_service(ConnectionId id, const ServiceParams& params);
  int answer_service(ConnectionId id, ServiceIdStatus status, std::uint32_t qpn, std::uint32_t qkey,
                     std::span<const std::uint8_t> private_data = {});

  // A message of the peer at the remote end of `route`.
  void receive(const Route& route, const Envelope& envelope);

  std::optional<Outgoing> next_message();
  std::optional<Event> next_event();
  std::optional<Transition> next_transition();

  const ManagerCounters& counters() const { return counters_; }
  std::size_t connections() const { return connections_.size(); }

 private:
  using PeerId = std::pair<std::uint64_t, std::uint32_t>;  // CA GUID, communication ID or QPN

  void on(const Route& route, const Envelope& envelope, const ConnectRequest& message);
  void on(const Route& route, const Envelope& envelope, const MessageReceiptAck& message);
  void on(const Route& route, const Envelope& envelope, const ConnectReject& message);
  void on(const Route& route, const Envelope& envelope, const ConnectReply& message);
  void on(const Route& route, const Envelope& envelope, const ReadyToUse& message);
  void on(const Route& route, const Envelope& envelope, const DisconnectRequest& message);
  void on(const Route& route, const Envelope& envelope, const DisconnectReply& message);
  void on(const Route& route, const Envelope& envelope, const ServiceIdRequest& message);
  void on(const Route& route, const Envelope& envelope, const ServiceIdReply& message);
  void on(const Route& route, const Envelope& envelope, const LoadAlternatePath& message);
  void on(const Route& route, const Envelope& envelope, const AlternatePathResponse& message);

  std::uint64_t guid_of(const Gid& local) const;
  Connection* lookup(ConnectionId id);
  // Connection with the local ID `local` whose peer uses the ID `remote`; nullptr: none.
  Connection* match(std::uint32_t local, std::uint32_t remote);
  bool is_repeated(const Route& route, const ConnectRequest& request);
  bool enter_peer(Connection& connection, const Peer& peer);
  void forget_peer(Connection& connection);
  void forget_peer_qp(const Connection& connection);
  void move(Connection& connection, State to);
  void reset(Connection& connection);
  void enter_timewait(Connection& connection);
  void erase(ConnectionId id);

  static std::uint64_t new_transaction(const Connection& connection);
  void send(const Route& route, const Envelope& envelope);
  void send_until_answered(Connection& connection, Envelope envelope);
  void answered(Connection& connection);
  void arm(Connection& connection, std::optional<Duration> deadline);
  void expire(Connection& connection);
  void give_up(Connection& connection);
  void tell(EventKind kind, const Connection& connection, const Message& message = {});
  // Rejects a REQ for which no connection exists.
  void reject_request(const Route& route, std::uint64_t transaction, std::uint32_t remote_id, RejectReason reason);

  const Params params_;
  Duration now_;
  std::uint32_t next_id_ = 1;
  std::set<std::uint64_t> services_;
  std::map<ConnectionId, Connection> connections_;
  std::map<PeerId, ConnectionId> by_remote_id_;
  std::map<PeerId, ConnectionId> by_remote_qpn_;
  std::map<std::pair<Gid, std::uint32_t>, ConnectionId> service_requests_;
  std::set<std::pair<Duration, ConnectionId>> deadlines_;
  std::deque<Outgoing> outgoing_;
  std::deque<Event> events_;
  std::deque<Transition> transitions_;
  ManagerCounters counters_;
};

}  // namespace rnicsim::cm
