// SPDX-License-Identifier: Apache-2.0
// The BTH opcode table (IBTA vol 1, table 38): one row for each opcode. Headers, position in a message, payload rule
// and legality follow from the row.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "model/roce/types.h"

namespace rnicsim::roce {

enum class Opcode : std::uint8_t {
  send_first = 0x00,
  send_middle = 0x01,
  send_last = 0x02,
  send_last_imm = 0x03,
  send_only = 0x04,
  send_only_imm = 0x05,
  write_first = 0x06,
  write_middle = 0x07,
  write_last = 0x08,
  write_last_imm = 0x09,
  write_only = 0x0a,
  write_only_imm = 0x0b,
  read_request = 0x0c,
  read_response_first = 0x0d,
  read_response_middle = 0x0e,
  read_response_last = 0x0f,
  read_response_only = 0x10,
  acknowledge = 0x11,
  atomic_acknowledge = 0x12,
  compare_swap = 0x13,
  fetch_add = 0x14,
  send_last_inv = 0x16,
  send_only_inv = 0x17,
  atomic_write = 0x1d,  // IBTA 1.5
  uc_send_first = 0x20,
  uc_send_middle = 0x21,
  uc_send_last = 0x22,
  uc_send_last_imm = 0x23,
  uc_send_only = 0x24,
  uc_send_only_imm = 0x25,
  uc_write_first = 0x26,
  uc_write_middle = 0x27,
  uc_write_last = 0x28,
  uc_write_last_imm = 0x29,
  uc_write_only = 0x2a,
  uc_write_only_imm = 0x2b,
  ud_send_only = 0x64,
  ud_send_only_imm = 0x65,
  cnp = 0x81,  // congestion notification packet (IBTA annex A17.9.3): valid for queue pairs of every
               // transport
  xrc_send_first = 0xa0,
  xrc_send_middle = 0xa1,
  xrc_send_last = 0xa2,
  xrc_send_last_imm = 0xa3,
  xrc_send_only = 0xa4,
  xrc_send_only_imm = 0xa5,
  xrc_write_first = 0xa6,
  xrc_write_middle = 0xa7,
  xrc_write_last = 0xa8,
  xrc_write_last_imm = 0xa9,
  xrc_write_only = 0xaa,
  xrc_write_only_imm = 0xab,
  xrc_read_request = 0xac,
  xrc_read_response_first = 0xad,
  xrc_read_response_middle = 0xae,
  xrc_read_response_last = 0xaf,
  xrc_read_response_only = 0xb0,
  xrc_acknowledge = 0xb1,
  xrc_atomic_acknowledge = 0xb2,
  xrc_compare_swap = 0xb3,
  xrc_fetch_add = 0xb4,
  xrc_send_last_inv = 0xb6,
  xrc_send_only_inv = 0xb7,
  read_acknowledge = 0xc1,  // manufacturer opcode of this device: acknowledges packets of READ responses
  raw_frame = 0xff,         // never on a wire: a frame of a raw queue pair, within a device
};

enum class Operation : std::uint8_t {
  send,
  write,
  read,
  read_response,
  acknowledge,
  atomic_acknowledge,
  atomic,
  atomic_write,
  notify  // CNP or read_acknowledge: not part of a message, takes no PSN, is not given to a core
};
enum class Position : std::uint8_t { first, middle, last, only };
enum class PayloadRule : std::uint8_t { none, full_mtu, last_part, whole };  // 0; MTU; 1..MTU; 0..MTU

namespace header {
inline constexpr std::uint8_t kReth = 1u << 0;
inline constexpr std::uint8_t kAeth = 1u << 1;
inline constexpr std::uint8_t kImmediate = 1u << 2;
inline constexpr std::uint8_t kAtomic = 1u << 3;
inline constexpr std::uint8_t kAtomicAck = 1u << 4;
inline constexpr std::uint8_t kInvalidate = 1u << 5;
inline constexpr std::uint8_t kDeth = 1u << 6;
inline constexpr std::uint8_t kXrceth = 1u << 7;
}  // namespace header

struct OpcodeInfo {
  Opcode opcode;
  const char* name;
  Transport transport;  // transport of the queue pair that receives the packet
  Operation operation;
  Position position;
  std::uint8_t headers;  // header:: bits after the BTH, in the order of IBTA 5.2
  PayloadRule payload;

  constexpr bool begins() const { return position == Position::first || position == Position::only; }
  constexpr bool ends() const { return position == Position::last || position == Position::only; }
  constexpr bool has(std::uint8_t header) const { return (headers & header) != 0; }
  constexpr bool response() const {
    return operation == Operation::read_response || operation == Operation::acknowledge ||
           operation == Operation::atomic_acknowledge;
  }
  // For atomics: true: compare and swap; false: fetch and add.
  constexpr bool swaps() const { return opcode == Opcode::compare_swap || opcode == Opcode::xrc_compare_swap; }
  bool payload_fits(std::uint32_t bytes, std::uint32_t mtu) const;
};

extern const std::array<const OpcodeInfo*, 256> kOpcodeRows;  // by code; nullptr: reserved, or not in RoCE
// Row of an opcode on the wire; nullptr: reserved.
inline const OpcodeInfo* find_opcode(std::uint8_t code) {
  return code != static_cast<std::uint8_t>(Opcode::raw_frame) ? kOpcodeRows[code] : nullptr;
}
// Row of an opcode that is in the table.
inline const OpcodeInfo& info(Opcode opcode) { return *kOpcodeRows[static_cast<std::uint8_t>(opcode)]; }

// Additional header of the last packet of a message.
enum class Extra : std::uint8_t { none, immediate, invalidate };

// The opcode of one packet, among those of the transport. Not for atomics, whose operation has two opcodes. `extra`
// counts for the last packet only.
Opcode opcode_of(Transport transport, Operation operation, Position position, Extra extra = Extra::none);
// XRC opcodes are RC opcodes with another code in the first three bits.
constexpr Opcode reliable_opcode(Transport transport, Opcode of_rc) {
  constexpr std::uint8_t kXrc = 0xa0;
  return transport == Transport::rc ? of_rc : static_cast<Opcode>(kXrc | static_cast<std::uint8_t>(of_rc));
}
inline Opcode rc_opcode(Operation operation, Position position, Extra extra = Extra::none) {
  return opcode_of(Transport::rc, operation, position, extra);
}
constexpr Position position_of(std::uint32_t index, std::uint32_t packets) {
  if (packets == 1) return Position::only;
  if (index == 0) return Position::first;
  return index + 1 == packets ? Position::last : Position::middle;
}

}  // namespace rnicsim::roce
