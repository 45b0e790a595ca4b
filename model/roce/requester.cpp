// SPDX-License-Identifier: Apache-2.0
#include "model/roce/requester.h"

#include <algorithm>

namespace rnicsim::roce {
namespace {

// Operation of a message that a response answers.
Operation operation_of(const Message& message) {
  if (message.is_read()) return Operation::read;
  return message.is_atomic_write() ? Operation::atomic_write : Operation::atomic;
}

Extra extra_in(const SendRequest& request) {
  if (request.invalidate) return Extra::invalidate;
  return request.immediate ? Extra::immediate : Extra::none;
}

}  // namespace

bool Requester::may_start(const Message& message) const {
  if (window_.draining && !message.started) return false;
  if (message.request.fence) {
    for (const auto& earlier : window_.messages) {
      if (&earlier == &message) break;
      if (earlier.is_rd_atomic() && !earlier.data_complete()) return false;
    }
  }
  return !message.is_rd_atomic() || window_.rd_atomic_outstanding < window_.attributes.max_rd_atomic;
}

bool Requester::may_send_more(const Message& message) const {
  const auto oldest = window_.oldest_psn();
  const auto packets = message.is_read() ? message.packets - message.sent : 1;
  const auto in_flight = static_cast<std::uint32_t>(distance(oldest, message.first + message.sent));
  const auto most = window_.attributes.recovery.most_in_flight;
  if (most != 0 && in_flight != 0 && in_flight + packets > most) return false;
  return in_flight == 0 || in_flight + packets < SendWindow::kMostPsns;
}

std::optional<std::uint64_t> Requester::next_message() const {
  if (window_.rnr_waiting) return std::nullopt;
  if (window_.resends.pending() && sends_again()) {
    const auto* message = window_.message_at(window_.resends.next());
    return message == nullptr || message->error ? std::nullopt : std::optional(message->request.id);
  }
  for (auto at = window_.cursor; at < window_.messages.size(); ++at) {
    const auto& message = window_.messages[at];
    if (message.error || message.local != Message::Local::none) return std::nullopt;
    if (message.sent == message.packets) continue;
    const bool begins = message.sent == 0 || message.is_rd_atomic();
    if ((begins && !may_start(message)) || !may_send_more(message)) return std::nullopt;
    return message.request.id;
  }
  return std::nullopt;
}

// Skips packets that the responder has acknowledged.
bool Requester::sends_again() const {
  auto& resends = window_.resends;
  for (; resends.pending(); resends.sent_before(resends.next() + 1)) {
    const auto* message = window_.message_at(resends.next());
    const bool answered = before(resends.next(), resends.acknowledged());
    if (message == nullptr || message->is_rd_atomic() || !answered) return true;
  }
  return false;
}

void Requester::skip_sent() {
  auto& messages = window_.messages;
  while (window_.cursor < messages.size()) {
    const auto& message = messages[window_.cursor];
    if (message.error || message.sent != message.packets) return;
    ++window_.cursor;
  }
}

std::optional<RequestPacket> Requester::next_packet() {
  if (!can_send()) return std::nullopt;
  RequestPacket packet;
  static_cast<SentRequest&>(packet) = send(packet.headers);
  return packet;
}

SentRequest Requester::send(Headers& headers) {
  return window_.resends.pending() ? send_again(headers) : send_next(headers);
}

SentRequest Requester::send_next(Headers& headers) {
  skip_sent();
  auto& message = window_.messages[window_.cursor];
  message.started = true;
  SentRequest sent;
  if (message.is_rd_atomic()) {
    sent = response_request(message, message.sent, message.packets - message.sent, headers);
    message.asked_from = message.sent;
    message.sent = message.packets;
    message.outstanding = true;
    ++window_.rd_atomic_outstanding;
  } else {
    sent = data_packet(message, message.sent, headers);
    ++message.sent;
  }
  address(message, sent, headers);
  sent.end = message.first + message.sent;
  if (before(window_.unsent_psn, sent.end)) window_.unsent_psn = sent.end;
  return sent;
}

// A READ requests a run of missing response packets. A responder accepts no more repeated READs than new ones, so the
// last READ that it accepts requests all lost packets.
SentRequest Requester::send_again(Headers& headers) {
  auto& resends = window_.resends;
  const auto psn = resends.next();
  auto& message = *window_.message_at(psn);
  const auto index = static_cast<std::uint32_t>(message.index_of(psn));
  std::uint32_t packets = 1;
  if (message.is_read()) {
    const bool is_last = ++window_.reads_again >= window_.attributes.max_rd_atomic;
    while (index + packets < message.packets && before(psn + packets, resends.end()) &&
           (is_last || !resends.has_arrived(psn + packets)))
      ++packets;
  }
  auto sent = message.is_rd_atomic() ? response_request(message, index, packets, headers)
                                     : data_packet(message, index, headers);
  address(message, sent, headers);
  sent.again = true;
  sent.end = psn + packets;
  resends.sent_before(sent.end);
  return sent;
}

void Requester::address(const Message& message, SentRequest& sent, Headers& headers) const {
  sent.message = message.request.id;
  const bool datagram = window_.attributes.transport == Transport::ud;
  headers.bth.destination = datagram ? message.request.remote : window_.attributes.remote;
  if (datagram) headers.deth = Deth{message.request.qkey, window_.attributes.local};
  if (window_.attributes.transport == Transport::xrc_send) headers.xrc_srqn = message.request.srqn;
}

// The request of a READ takes the PSNs of its response packets.
SentRequest Requester::response_request(const Message& message, std::uint32_t from, std::uint32_t packets,
                                        Headers& headers) const {
  const auto& request = message.request;
  const auto transport = window_.attributes.transport;
  SentRequest packet{.operation = operation_of(message), .offset = from * window_.attributes.mtu, .end = {}};
  headers.bth.psn = message.first + from;
  headers.bth.ack_request = true;
  if (message.is_read()) {
    headers.bth.opcode = reliable_opcode(transport, Opcode::read_request);
    const auto left = request.length - packet.offset;
    const bool to_end = from + packets == message.packets;
    headers.reth =
        Reth{request.remote_address + packet.offset, request.rkey, to_end ? left : packets * window_.attributes.mtu};
  } else if (message.is_atomic_write()) {
    headers.bth.opcode = Opcode::atomic_write;
    headers.reth = Reth{request.remote_address, request.rkey, request.length};
    packet.payload = request.length;
  } else {
    const bool swap = request.operation == SendOperation::compare_swap;
    headers.bth.opcode = reliable_opcode(transport, swap ? Opcode::compare_swap : Opcode::fetch_add);
    headers.atomic = AtomicEth{request.remote_address, request.rkey, request.swap_add, request.compare};
  }
  return packet;
}

SentRequest Requester::data_packet(const Message& message, std::uint32_t index, Headers& headers) const {
  const auto& request = message.request;
  const auto mtu = message.part(window_.attributes.mtu);
  const bool send = request.operation == SendOperation::send;
  const auto transport = window_.attributes.transport;
  // Each segment of a raw message is a frame; with a RETH in each packet, each packet is a WRITE.
  const bool apart = transport == Transport::raw || (!send && carries_reth_in_each(request));
  const bool last = index + 1 == message.packets;
  const auto position = apart ? Position::only : position_of(index, message.packets);
  const auto extra = last ? extra_in(request) : Extra::none;
  const auto& row = info(opcode_of(transport, send ? Operation::send : Operation::write, position, extra));
  SentRequest packet{.operation = row.operation, .begins = index == 0, .offset = index * mtu, .end = {}};
  packet.payload = std::min(mtu, request.length - packet.offset);
  headers.bth.opcode = row.opcode;
  headers.bth.psn = message.first + index;
  const bool asks = last || (index + 1) % window_.asks_every == 0;
  headers.bth.ack_request = is_reliable(transport) && asks;
  headers.bth.solicited = last && request.solicited && (send || request.immediate);
  headers.bth.pad = static_cast<std::uint8_t>(-packet.payload & 3);
  if (row.has(header::kReth))
    headers.reth = apart ? Reth{request.remote_address + packet.offset, request.rkey, packet.payload}
                         : Reth{request.remote_address, request.rkey, request.length};
  if (row.has(header::kImmediate)) headers.immediate = request.immediate;
  if (row.has(header::kInvalidate)) headers.invalidate = request.invalidate;
  return packet;
}

void Requester::fail(std::uint64_t id, Status status) {
  auto* message = window_.find(id);
  if (message == nullptr || message->error) return;
  message->error = status;
}

bool Requester::awaits_answer() const {
  const auto* message = window_.oldest_unanswered();
  return message != nullptr && message->sent > message->acknowledged;
}

bool Requester::ack_timeout(bool early) {
  if (!awaits_answer()) return false;
  if (!early && window_.retries_left == 0) {
    window_.fail_oldest(Status::transport_retry_exceeded);
    return false;
  }
  if (!early) --window_.retries_left;
  window_.gap_known = false;
  if (window_.selective())
    window_.resends.lose_all(window_.oldest_psn(), window_.unsent_psn);
  else
    window_.rewind();
  return true;
}

std::optional<SendRequest> Requester::take_local_work() {
  if (window_.messages.empty() || window_.draining) return std::nullopt;
  auto& head = window_.messages.front();
  if (head.local != Message::Local::waiting) return std::nullopt;
  head.local = Message::Local::running;
  head.started = true;
  return head.request;
}

void Requester::local_work_done(std::uint64_t id, Status status) {
  auto* message = window_.find(id);
  if (message == nullptr) return;
  message->local = Message::Local::none;
  if (status != Status::success && !message->error) message->error = status;
}

bool Requester::drained() const {
  for (const auto& message : window_.messages) {
    if (message.started && !message.data_complete()) return false;
    if (message.local == Message::Local::running) return false;
  }
  return true;
}

}  // namespace rnicsim::roce
