// SPDX-License-Identifier: Apache-2.0
// Posting to the send queue.
#include <infiniband/verbs.h>

#include <optional>

#include "model/abi/device.h"
#include "verbs/ibverbs/objects.h"
#include "verbs/ibverbs/posting/work_request_list.h"

namespace rnicsim::verbs {

namespace {

std::optional<abi::SendOpcode> device_opcode(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE: return abi::SendOpcode::write;
    case IBV_WR_RDMA_WRITE_WITH_IMM: return abi::SendOpcode::write_with_imm;
    case IBV_WR_SEND: return abi::SendOpcode::send;
    case IBV_WR_SEND_WITH_IMM: return abi::SendOpcode::send_with_imm;
    case IBV_WR_SEND_WITH_INV: return abi::SendOpcode::send_with_inv;
    case IBV_WR_RDMA_READ: return abi::SendOpcode::read;
    case IBV_WR_ATOMIC_CMP_AND_SWP: return abi::SendOpcode::compare_swap;
    case IBV_WR_ATOMIC_FETCH_AND_ADD: return abi::SendOpcode::fetch_add;
    case IBV_WR_LOCAL_INV: return abi::SendOpcode::local_inv;
    case IBV_WR_BIND_MW: return abi::SendOpcode::bind_window;
    case IBV_WR_TSO: return abi::SendOpcode::tso;
    case IBV_WR_ATOMIC_WRITE: return abi::SendOpcode::atomic_write;
    default: return std::nullopt;  // not supported by this device, or no opcode
  }
}

// Both interfaces, ibv_post_send(3) and ibv_wr_*, number the operations alike, with one exception.
constexpr ibv_qp_create_send_ops_flags operation_of(ibv_wr_opcode opcode) {
  if (opcode == IBV_WR_ATOMIC_WRITE) return IBV_QP_EX_WITH_ATOMIC_WRITE;
  return ibv_qp_create_send_ops_flags(1u << opcode);
}
static_assert(operation_of(IBV_WR_RDMA_WRITE) == IBV_QP_EX_WITH_RDMA_WRITE);
static_assert(operation_of(IBV_WR_RDMA_WRITE_WITH_IMM) == IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM);
static_assert(operation_of(IBV_WR_SEND) == IBV_QP_EX_WITH_SEND);
static_assert(operation_of(IBV_WR_SEND_WITH_IMM) == IBV_QP_EX_WITH_SEND_WITH_IMM);
static_assert(operation_of(IBV_WR_RDMA_READ) == IBV_QP_EX_WITH_RDMA_READ);
static_assert(operation_of(IBV_WR_ATOMIC_CMP_AND_SWP) == IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP);
static_assert(operation_of(IBV_WR_ATOMIC_FETCH_AND_ADD) == IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD);
static_assert(operation_of(IBV_WR_LOCAL_INV) == IBV_QP_EX_WITH_LOCAL_INV);
static_assert(operation_of(IBV_WR_BIND_MW) == IBV_QP_EX_WITH_BIND_MW);
static_assert(operation_of(IBV_WR_SEND_WITH_INV) == IBV_QP_EX_WITH_SEND_WITH_INV);
static_assert(operation_of(IBV_WR_TSO) == IBV_QP_EX_WITH_TSO);

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
  for (int i = 0; i < wr.num_sge; ++i) {
    const ibv_sge& sge = wr.sg_list[i];
    wqe.inline_bytes({reinterpret_cast<const std::byte*>(sge.addr), sge.length});
  }
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
  const auto opcode = device_opcode(wr.opcode);
  const bool legal = opcode && qp.does(operation_of(wr.opcode));
  if (!legal && !(opcode && qp.knows(operation_of(wr.opcode)))) return EINVAL;
  if (wr.num_sge < 0 || std::uint32_t(wr.num_sge) > qp.capabilities.max_send_sge) return EINVAL;
  wqe.begin(*opcode, control_flags(qp, wr.send_flags), immediate_of(wr));
  // An operation of another transport: the device reports it in a completion. The rest of the work request is not
  // interpreted.
  if (!legal) return 0;
  if (qp.qp_base.qp_type == IBV_QPT_UD) {
    const auto& [ah, remote_qpn, qkey] = wr.wr.ud;
    if (ah == nullptr || ah->context != qp.qp_base.context) return EINVAL;
    wqe.datagram(datagram_of(*ah, remote_qpn, qkey));
  }
  if (qp.qp_base.qp_type == IBV_QPT_XRC_SEND && has_peer(*opcode)) wqe.shared_queue(wr.qp_type.xrc.remote_srqn);
  add_remote(wr, wqe);
  if (*opcode == abi::SendOpcode::tso)
    if (const int error = add_segmentation(qp, wr.tso.hdr, wr.tso.hdr_sz, wr.tso.mss, wqe)) return error;
  if (*opcode == abi::SendOpcode::local_inv) return 0;
  if (*opcode == abi::SendOpcode::bind_window) return add_final_binding(wr, wqe);
  const int error = wr.send_flags & IBV_SEND_INLINE ? add_inline(qp, wr, *opcode, wqe) : add_segments(wr, wqe);
  if (error != 0) return error;
  return wqe.fits() ? 0 : EINVAL;
}

int post_one(Qp& qp, const ibv_send_wr& wr) {
  if (qp.send->full()) return ENOMEM;
  if (const int error = build(qp, wr, qp.builder)) return error;
  put_send(qp, wr.wr_id);
  return 0;
}

}  // namespace

bool has_peer(abi::SendOpcode opcode) {
  return opcode != abi::SendOpcode::local_inv && opcode != abi::SendOpcode::bind_window;
}

bool may_be_inline(abi::SendOpcode opcode) {
  using enum abi::SendOpcode;
  return opcode != read && opcode != compare_swap && opcode != fetch_add && opcode != local_inv &&
         opcode != bind_window && opcode != tso;
}

int add_segmentation(const Qp& qp, const void* headers, std::uint16_t header_bytes, std::uint16_t mss,
                     provider::WqeBuilder& wqe) {
  const bool fits = headers != nullptr && header_bytes != 0 && header_bytes <= qp.max_tso_header;
  if (!fits || mss == 0) return EINVAL;
  wqe.segmentation(mss, {static_cast<const std::byte*>(headers), header_bytes});
  return 0;
}

std::uint32_t control_flags(const Qp& qp, unsigned flags) {
  const bool signaled = qp.signal_all || (flags & IBV_SEND_SIGNALED);
  const bool checks = (flags & IBV_SEND_IP_CSUM) && qp.qp_base.qp_type == IBV_QPT_RAW_PACKET;
  return (signaled ? abi::ControlSegment::kSignaled : 0) |
         (flags & IBV_SEND_SOLICITED ? abi::ControlSegment::kSolicited : 0) |
         (flags & IBV_SEND_FENCE ? abi::ControlSegment::kFence : 0) | (checks ? abi::ControlSegment::kChecksums : 0);
}

abi::DatagramSegment datagram_of(ibv_ah& ah, std::uint32_t remote_qpn, std::uint32_t qkey) {
  return {.path = Ah::of(&ah).path, .remote_qpn = remote_qpn & 0xffffff, .qkey = qkey};
}

void release_send(Qp& qp) {
  qp.send_lock.unlock(qp.owner().port);
  if (qp.failed) flush_unseen_receives(qp);
}

bool may_post_send(ibv_qp_state state) {
  return state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_SQE || state == IBV_QPS_ERR;
}

void put_send(Qp& qp, std::uint64_t wr_id) {
  DevicePort& port = qp.owner().port;
  if (port.followed()) {
    if (qp.send->all_rung())
      qp.posting = {.time = port.time(), .queue = qp.qp_base.qp_num, .position = qp.send->mark().blocks & 0xffff};
    ++qp.posting.count;
  }
  qp.send->post(qp.builder, wr_id);
  port.charge(abi::CpuCost::post_wqe);
}

void ring_send(Qp& qp) {
  if (qp.send->all_rung()) return;
  DevicePort& port = qp.owner().port;
  if (port.followed()) port.tell(qp.posting);
  port.charge(abi::CpuCost::ring_doorbell);
  qp.page->pass_lock(port);
  qp.send->ring();
  port.charge(abi::CpuCost::mmio_write);
}

int post_send(ibv_qp* handle, ibv_send_wr* list, ibv_send_wr** bad) {
  Qp& qp = Qp::of(handle);
  DevicePort& port = qp.owner().port;
  if (port.inherited()) return refuse(list, bad, ENODEV);
  if (qp.table != nullptr || qp.xrcd != nullptr || !may_post_send(handle->state)) return refuse(list, bad, EINVAL);
  if (!qp.send) return refuse(list, bad, ENOMEM);
  qp.send_lock.lock(port);
  const int error = post_list(list, bad, [&](const ibv_send_wr& wr) { return post_one(qp, wr); });
  ring_send(qp);
  release_send(qp);
  return error != 0 ? errno = error : 0;
}

}  // namespace rnicsim::verbs
