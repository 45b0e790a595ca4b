// SPDX-License-Identifier: Apache-2.0
#include "model/roce/opcode.h"

namespace rnicsim::roce {
namespace {

using namespace header;
using enum Opcode;
using O = Operation;
using P = Position;
using R = PayloadRule;
using T = Transport;

constexpr auto kEvery = static_cast<T>(0);  // valid for queue pairs of every transport
constexpr OpcodeInfo kTable[] = {
    {send_first, "SEND_FIRST", T::rc, O::send, P::first, 0, R::full_mtu},
    {send_middle, "SEND_MIDDLE", T::rc, O::send, P::middle, 0, R::full_mtu},
    {send_last, "SEND_LAST", T::rc, O::send, P::last, 0, R::last_part},
    {send_last_imm, "SEND_LAST_IMM", T::rc, O::send, P::last, kImmediate, R::last_part},
    {send_only, "SEND_ONLY", T::rc, O::send, P::only, 0, R::whole},
    {send_only_imm, "SEND_ONLY_IMM", T::rc, O::send, P::only, kImmediate, R::whole},
    {write_first, "WRITE_FIRST", T::rc, O::write, P::first, kReth, R::full_mtu},
    {write_middle, "WRITE_MIDDLE", T::rc, O::write, P::middle, 0, R::full_mtu},
    {write_last, "WRITE_LAST", T::rc, O::write, P::last, 0, R::last_part},
    {write_last_imm, "WRITE_LAST_IMM", T::rc, O::write, P::last, kImmediate, R::last_part},
    {write_only, "WRITE_ONLY", T::rc, O::write, P::only, kReth, R::whole},
    {write_only_imm, "WRITE_ONLY_IMM", T::rc, O::write, P::only, kReth | kImmediate, R::whole},
    {read_request, "READ_REQUEST", T::rc, O::read, P::only, kReth, R::none},
    {read_response_first, "READ_RESPONSE_FIRST", T::rc, O::read_response, P::first, kAeth, R::full_mtu},
    {read_response_middle, "READ_RESPONSE_MIDDLE", T::rc, O::read_response, P::middle, 0, R::full_mtu},
    {read_response_last, "READ_RESPONSE_LAST", T::rc, O::read_response, P::last, kAeth, R::last_part},
    {read_response_only, "READ_RESPONSE_ONLY", T::rc, O::read_response, P::only, kAeth, R::whole},
    {acknowledge, "ACKNOWLEDGE", T::rc, O::acknowledge, P::only, kAeth, R::none},
    {atomic_acknowledge, "ATOMIC_ACKNOWLEDGE", T::rc, O::atomic_acknowledge, P::only, kAeth | kAtomicAck, R::none},
    {compare_swap, "COMPARE_SWAP", T::rc, O::atomic, P::only, kAtomic, R::none},
    {fetch_add, "FETCH_ADD", T::rc, O::atomic, P::only, kAtomic, R::none},
    {send_last_inv, "SEND_LAST_INV", T::rc, O::send, P::last, kInvalidate, R::last_part},
    {send_only_inv, "SEND_ONLY_INV", T::rc, O::send, P::only, kInvalidate, R::whole},
    {atomic_write, "ATOMIC_WRITE", T::rc, O::atomic_write, P::only, kReth, R::whole},
    {uc_send_first, "UC_SEND_FIRST", T::uc, O::send, P::first, 0, R::full_mtu},
    {uc_send_middle, "UC_SEND_MIDDLE", T::uc, O::send, P::middle, 0, R::full_mtu},
    {uc_send_last, "UC_SEND_LAST", T::uc, O::send, P::last, 0, R::last_part},
    {uc_send_last_imm, "UC_SEND_LAST_IMM", T::uc, O::send, P::last, kImmediate, R::last_part},
    {uc_send_only, "UC_SEND_ONLY", T::uc, O::send, P::only, 0, R::whole},
    {uc_send_only_imm, "UC_SEND_ONLY_IMM", T::uc, O::send, P::only, kImmediate, R::whole},
    {uc_write_first, "UC_WRITE_FIRST", T::uc, O::write, P::first, kReth, R::full_mtu},
    {uc_write_middle, "UC_WRITE_MIDDLE", T::uc, O::write, P::middle, 0, R::full_mtu},
    {uc_write_last, "UC_WRITE_LAST", T::uc, O::write, P::last, 0, R::last_part},
    {uc_write_last_imm, "UC_WRITE_LAST_IMM", T::uc, O::write, P::last, kImmediate, R::last_part},
    {uc_write_only, "UC_WRITE_ONLY", T::uc, O::write, P::only, kReth, R::whole},
    {uc_write_only_imm, "UC_WRITE_ONLY_IMM", T::uc, O::write, P::only, kReth | kImmediate, R::whole},
    {ud_send_only, "UD_SEND_ONLY", T::ud, O::send, P::only, kDeth, R::whole},
    {ud_send_only_imm, "UD_SEND_ONLY_IMM", T::ud, O::send, P::only, kDeth | kImmediate, R::whole},
    {cnp, "CNP", kEvery, O::notify, P::only, 0, R::whole},
    {xrc_send_first, "XRC_SEND_FIRST", T::xrc_recv, O::send, P::first, kXrceth, R::full_mtu},
    {xrc_send_middle, "XRC_SEND_MIDDLE", T::xrc_recv, O::send, P::middle, kXrceth, R::full_mtu},
    {xrc_send_last, "XRC_SEND_LAST", T::xrc_recv, O::send, P::last, kXrceth, R::last_part},
    {xrc_send_last_imm, "XRC_SEND_LAST_IMM", T::xrc_recv, O::send, P::last, kXrceth | kImmediate, R::last_part},
    {xrc_send_only, "XRC_SEND_ONLY", T::xrc_recv, O::send, P::only, kXrceth, R::whole},
    {xrc_send_only_imm, "XRC_SEND_ONLY_IMM", T::xrc_recv, O::send, P::only, kXrceth | kImmediate, R::whole},
    {xrc_write_first, "XRC_WRITE_FIRST", T::xrc_recv, O::write, P::first, kXrceth | kReth, R::full_mtu},
    {xrc_write_middle, "XRC_WRITE_MIDDLE", T::xrc_recv, O::write, P::middle, kXrceth, R::full_mtu},
    {xrc_write_last, "XRC_WRITE_LAST", T::xrc_recv, O::write, P::last, kXrceth, R::last_part},
    {xrc_write_last_imm, "XRC_WRITE_LAST_IMM", T::xrc_recv, O::write, P::last, kXrceth | kImmediate, R::last_part},
    {xrc_write_only, "XRC_WRITE_ONLY", T::xrc_recv, O::write, P::only, kXrceth | kReth, R::whole},
    {xrc_write_only_imm, "XRC_WRITE_ONLY_IMM", T::xrc_recv, O::write, P::only, kXrceth | kReth | kImmediate, R::whole},
    {xrc_read_request, "XRC_READ_REQUEST", T::xrc_recv, O::read, P::only, kXrceth | kReth, R::none},
    {xrc_read_response_first, "XRC_READ_RESPONSE_FIRST", T::xrc_send, O::read_response, P::first, kAeth, R::full_mtu},
    {xrc_read_response_middle, "XRC_READ_RESPONSE_MIDDLE", T::xrc_send, O::read_response, P::middle, 0, R::full_mtu},
    {xrc_read_response_last, "XRC_READ_RESPONSE_LAST", T::xrc_send, O::read_response, P::last, kAeth, R::last_part},
    {xrc_read_response_only, "XRC_READ_RESPONSE_ONLY", T::xrc_send, O::read_response, P::only, kAeth, R::whole},
    {xrc_acknowledge, "XRC_ACKNOWLEDGE", T::xrc_send, O::acknowledge, P::only, kAeth, R::none},
    {xrc_atomic_acknowledge, "XRC_ATOMIC_ACKNOWLEDGE", T::xrc_send, O::atomic_acknowledge, P::only, kAeth | kAtomicAck,
     R::none},
    {xrc_compare_swap, "XRC_COMPARE_SWAP", T::xrc_recv, O::atomic, P::only, kXrceth | kAtomic, R::none},
    {xrc_fetch_add, "XRC_FETCH_ADD", T::xrc_recv, O::atomic, P::only, kXrceth | kAtomic, R::none},
    {xrc_send_last_inv, "XRC_SEND_LAST_INV", T::xrc_recv, O::send, P::last, kXrceth | kInvalidate, R::last_part},
    {xrc_send_only_inv, "XRC_SEND_ONLY_INV", T::xrc_recv, O::send, P::only, kXrceth | kInvalidate, R::whole},
    {read_acknowledge, "READ_ACKNOWLEDGE", kEvery, O::notify, P::only, kAeth, R::none},
    {raw_frame, "RAW_FRAME", T::raw, O::send, P::only, 0, R::whole},
};

constexpr std::size_t kExtras = 3;
constexpr std::size_t index_of(Operation operation, Position position, Extra extra) {
  return (static_cast<std::size_t>(operation) * 4 + static_cast<std::size_t>(position)) * kExtras +
         static_cast<std::size_t>(extra);
}
constexpr Extra extra_of(const OpcodeInfo& row) {
  return row.has(kImmediate) ? Extra::immediate : row.has(kInvalidate) ? Extra::invalidate : Extra::none;
}
using OfTransport = std::array<Opcode, index_of(O::atomic_write, P::only, Extra::invalidate) + 1>;
// The opcodes of a transport; with `peer`, if requester and responder have different transports (XRC).
constexpr OfTransport opcodes_of(T transport, T peer) {
  OfTransport opcodes{};
  opcodes.fill(acknowledge);
  for (const auto& row : kTable)
    if (row.transport == transport || row.transport == peer)
      opcodes[index_of(row.operation, row.position, extra_of(row))] = row.opcode;
  return opcodes;
}
constexpr OfTransport kOpcodes[] = {opcodes_of(T::rc, T::rc), opcodes_of(T::uc, T::uc), opcodes_of(T::ud, T::ud),
                                    opcodes_of(T::raw, T::raw), opcodes_of(T::xrc_send, T::xrc_recv)};
constexpr std::size_t index_of(Transport transport) {
  constexpr std::size_t kRaw = 3, kXrc = 4;
  if (transport == T::xrc_send || transport == T::xrc_recv) return kXrc;
  return transport == T::raw ? kRaw : static_cast<std::size_t>(transport) - static_cast<std::size_t>(T::rc);
}

constexpr std::array<const OpcodeInfo*, 256> rows() {
  std::array<const OpcodeInfo*, 256> rows{};
  for (const auto& row : kTable) rows[static_cast<std::uint8_t>(row.opcode)] = &row;
  return rows;
}

}  // namespace

constinit const std::array<const OpcodeInfo*, 256> kOpcodeRows = rows();

bool OpcodeInfo::payload_fits(std::uint32_t bytes, std::uint32_t mtu) const {
  switch (payload) {
    case PayloadRule::none: return bytes == 0;
    case PayloadRule::full_mtu: return bytes == mtu;
    case PayloadRule::last_part: return bytes >= 1 && bytes <= mtu;
    case PayloadRule::whole: return bytes <= mtu;
  }
  return false;
}

Opcode opcode_of(Transport transport, Operation operation, Position position, Extra extra) {
  const bool ends = position == Position::last || position == Position::only;
  const auto& opcodes = kOpcodes[index_of(transport)];
  return opcodes[index_of(operation, position, ends ? extra : Extra::none)];
}

}  // namespace rnicsim::roce
