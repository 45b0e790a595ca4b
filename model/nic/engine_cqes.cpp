#include "model/nic/engine_cqes.h"

namespace rnicsim::nic {
namespace {

CqeWrite cqe(Qpn qpn, Cqn cqn, std::uint16_t index, abi::CqeOpcode opcode, bool solicited) {
  CqeWrite write{.cqn = cqn, .cqe = {}, .solicited = solicited};
  write.cqe.qpn = qpn.value;
  write.cqe.wqe_counter = index;
  write.cqe.opcode_owner = static_cast<std::uint8_t>(static_cast<unsigned>(opcode) << 4);
  return write;
}

abi::CqeOpcode receive_opcode(const roce::Headers& last) {
  if (roce::info(last.bth.opcode).operation != roce::Operation::send) return abi::CqeOpcode::receive_write_with_imm;
  if (last.invalidate) return abi::CqeOpcode::receive_send_with_inv;
  return last.immediate ? abi::CqeOpcode::receive_send_with_imm : abi::CqeOpcode::receive_send;
}

}  // namespace

CqeWrite send_cqe(Qpn qpn, Cqn cqn, std::uint16_t index, abi::SendOpcode opcode, std::uint32_t length,
                  roce::Status status) {
  const bool error = status != roce::Status::success;
  auto write = cqe(qpn, cqn, index, error ? abi::CqeOpcode::requester_error : abi::CqeOpcode::requester, error);
  write.cqe.byte_count = length;
  write.cqe.send_opcode = opcode;
  write.cqe.syndrome = static_cast<abi::CqeSyndrome>(status);
  return write;
}

CqeWrite receive_cqe(Qpn qpn, Cqn cqn, std::uint16_t index, const roce::Headers& last, std::uint32_t length) {
  auto write = cqe(qpn, cqn, index, receive_opcode(last), last.bth.solicited);
  write.cqe.byte_count = length;
  if (last.deth) {
    write.cqe.flags |= abi::Cqe::kGrh;
    const auto source = last.deth->source.value;
    for (int i = 0; i < 3; ++i) write.cqe.source_qpn[i] = static_cast<std::uint8_t>(source >> (8 * (2 - i)));
  }
  if (last.immediate) write.cqe.immediate = *last.immediate;
  if (last.invalidate) write.cqe.immediate = last.invalidate->value;
  return write;
}

CqeWrite receive_error_cqe(Qpn qpn, Cqn cqn, std::uint16_t index, roce::Status status) {
  auto write = cqe(qpn, cqn, index, abi::CqeOpcode::responder_error, true);
  write.cqe.syndrome = static_cast<abi::CqeSyndrome>(status);
  return write;
}

}  // namespace rnicsim::nic
