// SPDX-License-Identifier: Apache-2.0
// Posting to the send queue.
#include <optional>

#include "verbs/linux/provider/objects.h"
#include "verbs/linux/provider/work_request_list.h"

namespace rnicsim::linux_provider {

namespace {

struct Operation {
  abi::SendOpcode opcode;
  std::uint64_t bit;  // IBV_QP_EX_WITH_*
};

std::optional<Operation> operation_of(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE: return Operation{abi::SendOpcode::write, IBV_QP_EX_WITH_RDMA_WRITE};
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return Operation{abi::SendOpcode::write_with_imm, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM};
    case IBV_WR_SEND: return Operation{abi::SendOpcode::send, IBV_QP_EX_WITH_SEND};
    case IBV_WR_SEND_WITH_IMM: return Operation{abi::SendOpcode::send_with_imm, IBV_QP_EX_WITH_SEND_WITH_IMM};
    case IBV_WR_SEND_WITH_INV: return Operation{abi::SendOpcode::send_with_inv, IBV_QP_EX_WITH_SEND_WITH_INV};
    case IBV_WR_RDMA_READ: return Operation{abi::SendOpcode::read, IBV_QP_EX_WITH_RDMA_READ};
    case IBV_WR_ATOMIC_CMP_AND_SWP: return Operation{abi::SendOpcode::compare_swap, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP};
    case IBV_WR_ATOMIC_FETCH_AND_ADD: return Operation{abi::SendOpcode::fetch_add, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD};
    case IBV_WR_LOCAL_INV: return Operation{abi::SendOpcode::local_inv, IBV_QP_EX_WITH_LOCAL_INV};
    case IBV_WR_BIND_MW: return Operation{abi::SendOpcode::bind_window, IBV_QP_EX_WITH_BIND_MW};
    case IBV_WR_ATOMIC_WRITE: return Operation{abi::SendOpcode::atomic_write, IBV_QP_EX_WITH_ATOMIC_WRITE};
    default: return std::nullopt;  // not supported by this device, or no opcode
  }
}

// Immediate data or rkey of the control segment, in CPU order.
std::uint32_t immediate_of(const ibv_send_wr& wr) {
  switch (wr.opcode) {
    case IBV_WR_SEND_WITH_IMM:
    case IBV_WR_RDMA_WRITE_WITH_IMM: return __builtin_bswap32(wr.imm_data);
    case IBV_WR_SEND_WITH_INV:
    case IBV_WR_LOCAL_INV: return wr.invalidate_rkey;
    default: return 0;
  }
}

void add_remote(const ibv_send_wr& wr, provider::WqeBuilder& wqe) {
  switch (wr.opcode) {
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      wqe.remote_address(wr.wr.atomic.remote_addr, wr.wr.atomic.rkey);
      return wqe.atomic(wr.wr.atomic.swap, wr.wr.atomic.compare_add);
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      wqe.remote_address(wr.wr.atomic.remote_addr, wr.wr.atomic.rkey);
      return wqe.atomic(wr.wr.atomic.compare_add, 0);
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_ATOMIC_WRITE:
    case IBV_WR_RDMA_READ: return wqe.remote_address(wr.wr.rdma.remote_addr, wr.wr.rdma.rkey);
    default: return;
  }
}

int add_inline(const Qp& qp, const ibv_send_wr& wr, abi::SendOpcode opcode, provider::WqeBuilder& wqe) {
  if (!may_be_inline(opcode)) return EINVAL;
  std::uint64_t total = 0;
  for (int i = 0; i < wr.num_sge; ++i) total += wr.sg_list[i].length;
  if (total > qp.capabilities.max_inline_data) return EINVAL;
  if (total == 0) return 0;
  wqe.begin_inline();
  for (int i = 0; i < wr.num_sge; ++i)
    wqe.inline_bytes({reinterpret_cast<const std::byte*>(wr.sg_list[i].addr), wr.sg_list[i].length});
  wqe.end_inline();
  return 0;
}

int add_segments(const ibv_send_wr& wr, provider::WqeBuilder& wqe) {
  for (int i = 0; i < wr.num_sge; ++i) {
    const ibv_sge& sge = wr.sg_list[i];
    if (sge.length > kMaxSegmentBytes) return EINVAL;
    wqe.data(sge.addr, sge.length, sge.lkey);
  }
  return 0;
}

// Called last: the window gets its new rkey, so the WQE must not fail any more.
int add_final_binding(const ibv_send_wr& wr, provider::WqeBuilder& wqe) {
  const auto& [window, rkey, info] = wr.bind_mw;
  if (const int error = add_binding(window, rkey, info, wqe)) return error;
  take_rkey(*window, rkey);
  return 0;
}

int build(const Qp& qp, const ibv_send_wr& wr, provider::WqeBuilder& wqe) {
  const auto operation = operation_of(wr.opcode);
  if (!operation || !qp.does(operation->bit)) return EINVAL;
  if (wr.num_sge < 0 || std::uint32_t(wr.num_sge) > qp.capabilities.max_send_sge) return EINVAL;
  wqe.begin(operation->opcode, control_flags(qp, wr.send_flags), immediate_of(wr));
  if (qp.qp.qp_type == IBV_QPT_UD) {
    const auto& [ah, remote_qpn, qkey] = wr.wr.ud;
    if (ah == nullptr) return EINVAL;
    wqe.datagram(datagram_of(*ah, remote_qpn, qkey));
  }
  add_remote(wr, wqe);
  if (operation->opcode == abi::SendOpcode::local_inv) return 0;
  if (operation->opcode == abi::SendOpcode::bind_window) return add_final_binding(wr, wqe);
  const bool is_inline = (wr.send_flags & IBV_SEND_INLINE) != 0;
  const int error = is_inline ? add_inline(qp, wr, operation->opcode, wqe) : add_segments(wr, wqe);
  if (error != 0) return error;
  return wqe.fits() ? 0 : EINVAL;
}

int post_one(Qp& qp, const ibv_send_wr& wr) {
  if (qp.send->full()) return ENOMEM;
  if (const int error = build(qp, wr, qp.builder)) return error;
  qp.send->post(qp.builder, wr.wr_id);
  return 0;
}

}  // namespace

bool may_be_inline(abi::SendOpcode opcode) {
  using enum abi::SendOpcode;
  return opcode != read && opcode != compare_swap && opcode != fetch_add && opcode != local_inv &&
         opcode != bind_window;
}

std::uint32_t control_flags(const Qp& qp, unsigned flags) {
  const bool signaled = qp.signal_all || (flags & IBV_SEND_SIGNALED);
  return (signaled ? abi::ControlSegment::kSignaled : 0) |
         (flags & IBV_SEND_SOLICITED ? abi::ControlSegment::kSolicited : 0) |
         (flags & IBV_SEND_FENCE ? abi::ControlSegment::kFence : 0);
}

abi::DatagramSegment datagram_of(ibv_ah& ah, std::uint32_t remote_qpn, std::uint32_t qkey) {
  return {.path = Ah::of(&ah).path, .remote_qpn = remote_qpn & 0xffffff, .qkey = qkey};
}

bool may_post_send(ibv_qp_state state) {
  return state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_SQE || state == IBV_QPS_ERR;
}

void finish_sending(Qp& qp) {
  qp.send->ring();
  qp.send_lock.unlock();
  if (qp.failed) flush_unseen_receives(qp);
}

int post_send(ibv_qp* handle, ibv_send_wr* list, ibv_send_wr** bad) {
  Qp& qp = Qp::of(handle);
  if (!may_post_send(handle->state)) return refuse(list, bad, EINVAL);
  if (!qp.send) return refuse(list, bad, ENOMEM);
  qp.send_lock.lock();
  const int error = post_list(list, bad, [&](const ibv_send_wr& wr) { return post_one(qp, wr); });
  finish_sending(qp);
  return error;
}

}  // namespace rnicsim::linux_provider
