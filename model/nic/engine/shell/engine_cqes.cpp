// SPDX-License-Identifier: Apache-2.0
#include "model/nic/engine/shell/engine_cqes.h"

namespace rnicsim::nic {
namespace {

CqeWrite cqe(Qpn qpn, Cqn cqn, std::uint16_t index, CqeOpcode opcode, bool solicited) {
  CqeWrite write{.cqn = cqn, .cqe = {}, .solicited = solicited};
  write.cqe.qpn = qpn.value;
  write.cqe.wqe_counter = index;
  write.cqe.opcode = opcode;
  return write;
}

CqeOpcode receive_opcode(const roce::Headers& last) {
  if (roce::info(last.bth.opcode).operation != roce::Operation::send) return CqeOpcode::receive_write_with_imm;
  if (last.invalidate) return CqeOpcode::receive_send_with_inv;
  return last.immediate ? CqeOpcode::receive_send_with_imm : CqeOpcode::receive_send;
}

}  // namespace

CqeWrite send_cqe(Qpn qpn, Cqn cqn, std::uint16_t index, SendOpcode opcode, std::uint32_t length, roce::Status status) {
  const bool error = status != roce::Status::success;
  auto write = cqe(qpn, cqn, index, error ? CqeOpcode::requester_error : CqeOpcode::requester, error);
  write.cqe.byte_count = length;
  write.cqe.send_opcode = opcode;
  write.cqe.syndrome = status;
  return write;
}

CqeWrite receive_cqe(Qpn qpn, Cqn cqn, std::uint16_t index, const roce::Headers& last, std::uint32_t length) {
  auto write = cqe(qpn, cqn, index, receive_opcode(last), last.bth.solicited);
  write.cqe.byte_count = length;
  if (last.deth) {
    write.cqe.grh = true;
    write.cqe.source_qpn = last.deth->source.value & 0xffffff;
  }
  if (last.immediate) write.cqe.immediate = *last.immediate;
  if (last.invalidate) write.cqe.immediate = last.invalidate->value;
  return write;
}

CqeWrite receive_error_cqe(Qpn qpn, Cqn cqn, std::uint16_t index, roce::Status status) {
  auto write = cqe(qpn, cqn, index, CqeOpcode::responder_error, true);
  write.cqe.syndrome = status;
  return write;
}

}  // namespace rnicsim::nic
