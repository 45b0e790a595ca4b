// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/posted.h"

#include <algorithm>

namespace rnicsim::sim::replay {
namespace {

using roce::Operation;

constexpr std::uint32_t kLongestMessage = 1u << 30;

nic::SendOpcode opcode_of(const WirePacket& head, const WirePacket* tail) {
  const bool immediate = tail != nullptr && tail->headers.immediate.has_value();
  switch (head.row().operation) {
    case Operation::write: return immediate ? nic::SendOpcode::write_with_imm : nic::SendOpcode::write;
    case Operation::read: return nic::SendOpcode::read;
    case Operation::atomic:
      return head.headers.bth.opcode == roce::Opcode::fetch_add ? nic::SendOpcode::fetch_add
                                                                : nic::SendOpcode::compare_swap;
    case Operation::atomic_write: return nic::SendOpcode::atomic_write;
    default:
      if (tail != nullptr && tail->headers.invalidate) return nic::SendOpcode::send_with_inv;
      return immediate ? nic::SendOpcode::send_with_imm : nic::SendOpcode::send;
  }
}

// Follows packets at their first transmission.
class Inference {
 public:
  explicit Inference(std::uint32_t mtu) : mtu_(mtu) {}

  PostedRequests run(std::span<const WirePacket* const> sent) {
    for (const auto* packet : sent) {
      if (found_.requests.empty()) next_ = packet->psn();
      const auto ahead = distance(next_, packet->psn());
      if (ahead < 0) continue;  // retransmission
      if (ahead > 0 || !take(*packet)) {
        found_.hole = packet->frame;
        break;
      }
    }
    if (open_) end_early();
    for (auto& request : found_.requests) request.opcode = opcode_of(*request.head, request.tail);
    return std::move(found_);
  }

 private:
  bool take(const WirePacket& packet) {
    const auto& row = packet.row();
    if (row.begins() == open_) return false;
    if (row.begins()) return begin(packet);
    auto& request = found_.requests.back();
    if (row.operation != request.head->row().operation) return false;
    ++request.packets;
    add(request, packet);
    return true;
  }

  bool begin(const WirePacket& packet) {
    const auto operation = packet.row().operation;
    const bool is_read = operation == Operation::read;
    if (is_read && packet.headers.reth->length > kLongestMessage) return false;
    found_.requests.push_back({.frame = packet.frame,
                               .first = packet.psn(),
                               .packets = psns_of(packet, mtu_),
                               .head = &packet,
                               .payload = {},
                               .outcome = std::nullopt,
                               .brought = {}});
    auto& request = found_.requests.back();
    add(request, packet);
    if (is_read) request.length = packet.headers.reth->length;
    if (operation == Operation::atomic) request.length = roce::kAtomicBytes;
    return true;
  }

  void add(Posted& request, const WirePacket& packet) {
    const auto bytes = packet.payload.bytes();
    request.payload.insert(request.payload.end(), bytes.begin(), bytes.end());
    request.length = static_cast<std::uint32_t>(request.payload.size());
    open_ = !packet.row().ends();
    if (!open_) request.tail = &packet;
    next_ = request.first + request.packets;
  }

  // Unsent rest of a message: for a WRITE the RETH has its length; for a SEND at least one more byte is certain.
  void end_early() {
    found_.unfinished = true;
    auto& request = found_.requests.back();
    const auto& reth = request.head->headers.reth;
    ++request.length;
    if (reth && reth->length <= kLongestMessage) request.length = std::max(request.length, reth->length);
    request.packets = roce::packets_for(request.length, mtu_);
  }

  const std::uint32_t mtu_;
  PostedRequests found_;
  roce::Psn next_;
  bool open_ = false;  // the last packet of the message is still missing
};

}  // namespace

std::uint32_t psns_of(const WirePacket& request, std::uint32_t mtu) {
  return request.row().operation == Operation::read ? roce::packets_for(request.headers.reth->length, mtu) : 1;
}

PostedRequests implied_requests(std::span<const WirePacket* const> sent, std::uint32_t mtu) {
  return Inference(mtu).run(sent);
}

}  // namespace rnicsim::sim::replay
