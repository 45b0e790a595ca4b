// Work queue entries, decoded from their bytes in the rings. Nothing in them is trusted: a malformed send WQE becomes a
// request that completes with an error when its turn comes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/abi/queue.h"
#include "model/base/payload.h"
#include "model/nic/qp_engine.h"
#include "model/roce/send_window.h"

namespace rnicsim::nic {

// Of a ring or a doorbell record: bytes that an engine wants.
struct RingRead {
  std::uint64_t address;
  std::uint32_t bytes;
};

struct SendWqe {
  abi::SendOpcode opcode = abi::SendOpcode::nop;
  std::uint16_t index = 0;               // of its first block
  std::uint16_t blocks = 1;
  enum class Presence : std::uint8_t { unknown, asked, at_hand } presence = Presence::unknown;
  Regions regions;
  std::optional<Payload> inline_data;
  std::optional<abi::AddressVector> path;  // UD; else the QP's
  std::optional<WindowBinding> binding;  // of bind_window
  std::uint64_t message = 0;             // its request's id
  std::uint32_t length = 0;              // the request's
  std::uint32_t invalidated = 0;         // local_inv: this key
  bool signaled = false;
};

struct ParsedSend {
  SendWqe wqe;
  roce::SendRequest request;
};

// Blocks that a WQE says it takes; nullopt: nonsense.
std::optional<std::uint16_t> wqe_blocks(std::span<const std::byte> first_block);

// What the send WQEs of a QP may be.
struct SendRules {
  roce::Transport transport = roce::Transport::rc;
  std::uint32_t max_message = 1u << 30;  // UD: the MTU
  std::uint32_t qkey = 0;                // UD: where a WQE asks for the QP's own
  bool invalidate = true;                // the device has send_with_inv and local_inv,
  bool windows = true;                   // and bind_window
};

ParsedSend parse_send_wqe(std::span<const std::byte> bytes, Qpn qpn, std::uint16_t index, const SendRules& rules);
ReceiveWqe parse_receive_wqe(std::span<const std::byte> bytes, std::uint16_t index);

// The part [offset, offset + length) of a scatter/gather list.
Regions slice(const Regions& regions, std::uint64_t offset, std::uint32_t length);

}  // namespace rnicsim::nic
