// SPDX-License-Identifier: Apache-2.0
// The InfiniBand headers of a RoCEv2 packet, decoded, and their encoding on the wire (IBTA vol 1, chapter 9.2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "model/roce/opcode.h"
#include "model/roce/types.h"

namespace rnicsim::roce {

struct Bth {
  static constexpr std::size_t kBytes = 12;
  static constexpr std::uint16_t kDefaultPkey = 0xffff;
  Opcode opcode = Opcode::acknowledge;
  bool solicited = false;
  bool migrated = true;
  std::uint8_t pad = 0;  // bytes that bring the payload to a multiple of 4
  std::uint8_t version = 0;
  std::uint16_t pkey = kDefaultPkey;
  bool fecn = false;
  bool becn = false;
  Qpn destination;
  bool ack_request = false;
  Psn psn;
  bool operator==(const Bth&) const = default;
};

struct Reth {
  std::uint64_t address = 0;
  Rkey rkey;
  std::uint32_t length = 0;
  bool operator==(const Reth&) const = default;
};

struct Aeth {
  // Syndromes: kAck | credit count, kRnrNak | timer code, or one of the NAKs.
  static constexpr std::uint8_t kAck = 0x00;
  static constexpr std::uint8_t kRnrNak = 0x20;
  static constexpr std::uint8_t kNak = 0x60;
  static constexpr std::uint8_t kClassMask = 0x60;
  static constexpr std::uint8_t kValueMask = 0x1f;
  static constexpr std::uint8_t kNoCredits = 0x1f;  // the responder does not count credits
  static constexpr std::uint8_t kSequenceError = 0x60;
  static constexpr std::uint8_t kInvalidRequest = 0x61;
  static constexpr std::uint8_t kRemoteAccessError = 0x62;
  static constexpr std::uint8_t kRemoteOperationError = 0x63;
  // Not in IBTA: a NAK code that the specification reserves. The packet with the PSN in the MSN field has arrived;
  // packets between the BTH's PSN and that PSN may be missing (selective retransmission).
  static constexpr std::uint8_t kSelectiveNak = 0x70;
  std::uint8_t syndrome = kAck | kNoCredits;
  std::uint32_t msn = 0;  // 24 bits
  bool operator==(const Aeth&) const = default;
};

struct AtomicEth {
  std::uint64_t address = 0;
  Rkey rkey;
  std::uint64_t swap_add = 0;
  std::uint64_t compare = 0;
  bool operator==(const AtomicEth&) const = default;
};

struct Deth {
  std::uint32_t qkey = 0;
  Qpn source;
  bool operator==(const Deth&) const = default;
};

struct Headers {
  static constexpr std::size_t kMaxBytes = Bth::kBytes + 28 + 8 + 4;
  Bth bth;
  std::optional<Deth> deth;
  std::optional<std::uint32_t> xrc_srqn;  // XRC: shared receive queue of the message
  std::optional<Reth> reth;
  std::optional<AtomicEth> atomic;
  std::optional<Aeth> aeth;
  std::optional<std::uint64_t> atomic_ack;  // value before the atomic
  std::optional<std::uint32_t> immediate;
  std::optional<Rkey> invalidate;
  bool operator==(const Headers&) const = default;
};

// Truncates values that are wider than their fields, as encode() does.
inline void cut_to_fields(Headers& headers) {
  constexpr std::uint32_t kField = 0xffffff;
  headers.bth.destination.value &= kField;
  if (headers.deth) headers.deth->source.value &= kField;
  if (headers.xrc_srqn) *headers.xrc_srqn &= kField;
  if (headers.aeth) headers.aeth->msn &= kField;
}

// Bytes of the BTH and of the headers that the opcode requires.
std::size_t encoded_size(const OpcodeInfo& info);
// Writes the BTH and the headers that the opcode requires; a header that `headers` lacks is zeros. Returns the bytes
// written.
std::size_t encode(const Headers& headers, std::span<std::byte> out);
// nullopt: reserved opcode, or fewer bytes than the opcode requires.
std::optional<Headers> decode(std::span<const std::byte> bytes);

}  // namespace rnicsim::roce
