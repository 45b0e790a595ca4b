#include "model/roce/requester.h"

#include <algorithm>

namespace rnicsim::roce {
namespace {

Operation wire_operation(SendOperation operation) {
  switch (operation) {
    case SendOperation::write: return Operation::write;
    case SendOperation::read: return Operation::read;
    case SendOperation::nop:
    case SendOperation::send: break;
  }
  return Operation::send;
}

}  // namespace

bool Requester::may_start(const Message& message) const {
  if (draining_) return false;
  if (message.request.fence && window_.reads_in_flight != 0) return false;
  return !message.is_read() || window_.reads_in_flight < window_.attributes.max_rd_atomic;
}

bool Requester::can_send() const {
  if (window_.rnr_waiting) return false;
  for (auto at = window_.cursor; at < window_.messages.size(); ++at) {
    const auto& message = window_.messages[at];
    if (message.error) return false;
    if (message.sent == message.packets) continue;
    const bool begins = message.sent == 0 || message.is_read();
    return !begins || may_start(message);
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
  skip_sent();
  auto& message = window_.messages[window_.cursor];
  const auto& request = message.request;
  const auto mtu = window_.attributes.mtu;
  const auto offset = message.sent * mtu;
  RequestPacket packet{.message = request.id, .offset = offset};
  auto& bth = packet.headers.bth;
  bth.destination = window_.attributes.remote;
  bth.psn = message.first + message.sent;
  if (message.is_read()) {
    bth.opcode = Opcode::read_request;
    bth.ack_request = true;
    packet.headers.reth = Reth{request.remote_address + offset, request.rkey, request.length - offset};
    message.sent = message.packets;
    ++window_.reads_in_flight;
    return packet;
  }
  const auto position = position_of(message.sent, message.packets);
  const auto& row = info(rc_opcode(wire_operation(request.operation), position, request.immediate.has_value()));
  bth.opcode = row.opcode;
  bth.ack_request = row.ends();
  bth.solicited = row.ends() && request.solicited && (request.operation == SendOperation::send || request.immediate);
  packet.payload = std::min(mtu, request.length - offset);
  bth.pad = static_cast<std::uint8_t>(-packet.payload & 3);
  if (row.has(header::kReth)) packet.headers.reth = Reth{request.remote_address, request.rkey, request.length};
  if (row.has(header::kImmediate)) packet.headers.immediate = request.immediate;
  ++message.sent;
  return packet;
}

void Requester::fail(std::uint64_t id, Status status) {
  auto* message = window_.find(id);
  if (message == nullptr || message->error) return;
  message->error = status;
}

bool Requester::ack_timeout() {
  if (!awaits_answer()) return false;
  if (window_.retries_left == 0) {
    window_.fail_oldest(Status::transport_retry_exceeded);
    return false;
  }
  --window_.retries_left;
  window_.gap_known = false;
  window_.rewind();
  return true;
}

bool Requester::drained() const {
  for (const auto& message : window_.messages)
    if (message.sent != 0 && !message.answered()) return false;
  return true;
}

}  // namespace rnicsim::roce
