// SPDX-License-Identifier: Apache-2.0
#include "sim/trace/queue_pair_events.h"

#include "model/abi/queue.h"
#include "model/roce/headers.h"
#include "model/roce/opcode.h"
#include "model/roce/types.h"

namespace rnicsim::sim {
namespace {

const NamedField aeth_syndrome("aeth_syndrome"), queue("queue");

}  // namespace

const roce::OpcodeInfo* opcode_row(const TraceEvent& packet) {
  return roce::find_opcode(static_cast<std::uint8_t>(value_of(packet, field::opcode)));
}

bool is_request(const TraceEvent& packet) {
  const auto* row = opcode_row(packet);
  return row != nullptr && !row->response() && row->operation != roce::Operation::notify;
}

bool is_response(const TraceEvent& packet) {
  const auto* row = opcode_row(packet);
  return row != nullptr && row->response();
}

bool is_nak(const TraceEvent& packet) {
  const auto* row = opcode_row(packet);
  if (row == nullptr || row->operation != roce::Operation::acknowledge) return false;
  return (value_of(packet, aeth_syndrome) & roce::Aeth::kClassMask) != roce::Aeth::kAck;
}

bool is_cnp(const TraceEvent& packet) {
  const auto* row = opcode_row(packet);
  return row != nullptr && row->operation == roce::Operation::notify;
}

bool is_send_queue(const TraceEvent& wqe) { return value_of(wqe, queue) == 0; }

bool sends_packets(const TraceEvent& wqe) {
  using enum abi::SendOpcode;
  const auto opcode = abi::SendOpcode(value_of(wqe, field::opcode));
  return opcode != nop && opcode != bind_window && opcode != local_inv && opcode != fast_register;
}

bool is_requesters(const TraceEvent& cqe) {
  const auto opcode = abi::CqeOpcode(value_of(cqe, field::opcode));
  return opcode == abi::CqeOpcode::requester || opcode == abi::CqeOpcode::requester_error;
}

bool is_reset(const TraceEvent& event) {
  constexpr std::uint64_t kReset = 0;  // IBV_QPS_RESET of enum ibv_qp_state
  return event.kind == EventKind::qp_state && value_of(event, field::to) == kReset;
}

std::int32_t psn_distance(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(((a - b) & roce::Psn::kMask) << 8) >> 8;
}

bool NewPsns::add(std::uint64_t psn) {
  const auto value = static_cast<std::uint32_t>(psn);
  if (highest_ && psn_distance(value, *highest_) <= 0) return false;
  highest_ = value;
  return true;
}

}  // namespace rnicsim::sim
