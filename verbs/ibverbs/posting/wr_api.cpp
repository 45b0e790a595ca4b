// SPDX-License-Identifier: Apache-2.0
// The ibv_wr_* interface. The caller holds the send queue between wr_start and wr_complete. A WQE is copied into the
// ring when the next one begins or the batch ends. The doorbell is rung by wr_complete.
#include <infiniband/verbs.h>

#include <span>
#include <utility>

#include "model/abi/device.h"
#include "verbs/ibverbs/objects.h"

namespace rnicsim::verbs {

namespace {

void latch(Qp& qp, int error) {
  if (qp.batch.error == 0) qp.batch.error = error;
}

void finish_wqe(Qp& qp) {
  if (!qp.batch.building) return;
  qp.batch.building = false;
  if (qp.batch.wants_address && !qp.batch.has_address) latch(qp, EINVAL);
  if (!qp.builder.fits()) latch(qp, EINVAL);
  if (qp.batch.error != 0) return;
  put_send(qp, qp.batch.wr_id);
}

// Begins a WQE; `immediate` in CPU order. False: the batch has failed.
bool begin_wqe(Qp& qp, abi::SendOpcode opcode, std::uint32_t immediate = 0) {
  finish_wqe(qp);
  if (!qp.send || qp.send->full()) latch(qp, ENOMEM);
  if (qp.batch.error != 0) return false;
  qp.batch.building = true;
  qp.batch.takes_inline = may_be_inline(opcode);
  const bool extended = qp.qp_base.qp_type == IBV_QPT_XRC_SEND && has_peer(opcode);
  qp.batch.wants_address = extended || qp.qp_base.qp_type == IBV_QPT_UD;
  qp.batch.has_data = qp.batch.has_address = false;
  qp.batch.wr_id = qp.wr_id;
  qp.builder.begin(opcode, control_flags(qp, qp.wr_flags), immediate);
  if (qp.qp_base.qp_type == IBV_QPT_UD) qp.builder.datagram();
  if (extended) qp.builder.shared_queue();
  return true;
}

bool begin_rdma(ibv_qp_ex* handle, abi::SendOpcode opcode, std::uint32_t rkey, std::uint64_t address,
                __be32 immediate = 0) {
  Qp& qp = Qp::of(handle);
  if (!begin_wqe(qp, opcode, __builtin_bswap32(immediate))) return false;
  qp.builder.remote_address(address, rkey);
  return true;
}

void begin_atomic(ibv_qp_ex* handle, abi::SendOpcode opcode, std::uint32_t rkey, std::uint64_t address,
                  std::uint64_t swap_add, std::uint64_t compare) {
  Qp& qp = Qp::of(handle);
  if (!begin_wqe(qp, opcode)) return;
  qp.builder.remote_address(address, rkey);
  qp.builder.atomic(swap_add, compare);
}

// The WQE whose data a setter may set. nullptr: no WQE was begun, or its data are set.
provider::WqeBuilder* open_wqe(Qp& qp) {
  if (!qp.batch.building || std::exchange(qp.batch.has_data, true)) latch(qp, EINVAL);
  return qp.batch.error == 0 ? &qp.builder : nullptr;
}

void set_segments(ibv_qp_ex* handle, std::span<const ibv_sge> list) {
  Qp& qp = Qp::of(handle);
  provider::WqeBuilder* wqe = open_wqe(qp);
  if (wqe == nullptr) return;
  if (list.size() > qp.capabilities.max_send_sge) return latch(qp, EINVAL);
  for (const ibv_sge& sge : list) {
    if (sge.length > kMaxSegmentBytes) return latch(qp, EINVAL);
    wqe->data(sge.addr, sge.length, sge.lkey);
  }
}

void set_inline(ibv_qp_ex* handle, std::span<const ibv_data_buf> list) {
  Qp& qp = Qp::of(handle);
  provider::WqeBuilder* wqe = open_wqe(qp);
  if (wqe == nullptr) return;
  if (!qp.batch.takes_inline) return latch(qp, EINVAL);
  std::size_t total = 0;
  for (const ibv_data_buf& piece : list) total += piece.length;
  if (total > qp.capabilities.max_inline_data) return latch(qp, EINVAL);
  if (total == 0) return;
  wqe->begin_inline();
  for (const ibv_data_buf& piece : list) wqe->inline_bytes({static_cast<const std::byte*>(piece.addr), piece.length});
  wqe->end_inline();
}

void set_address(ibv_qp_ex* handle, ibv_ah* ah, std::uint32_t remote_qpn, std::uint32_t qkey) {
  Qp& qp = Qp::of(handle);
  const bool fits = qp.batch.building && ah != nullptr && ah->context == qp.qp_base.context;
  if (!fits || std::exchange(qp.batch.has_address, true)) latch(qp, EINVAL);
  if (qp.batch.error == 0) qp.builder.set_datagram(datagram_of(*ah, remote_qpn, qkey));
}

void set_shared_queue(ibv_qp_ex* handle, std::uint32_t srqn) {
  Qp& qp = Qp::of(handle);
  const bool fits = qp.batch.building && qp.batch.wants_address;
  if (!fits || std::exchange(qp.batch.has_address, true)) latch(qp, EINVAL);
  if (qp.batch.error == 0) qp.builder.set_shared_queue(srqn);
}

void start(ibv_qp_ex* handle) {
  Qp& qp = Qp::of(handle);
  qp.send_lock.lock(qp.owner().port);
  qp.batch = {};
  if (qp.owner().port.inherited()) latch(qp, ENODEV);
  if (qp.table != nullptr || qp.xrcd != nullptr || !may_post_send(qp.qp_base.state)) latch(qp, EINVAL);
  if (qp.send) qp.batch.start = qp.send->mark();
}

void end_bindings(Qp& qp, bool posted) {
  if (posted)
    for (const auto& [window, rkey] : qp.bindings) take_rkey(*window, rkey);
  qp.bindings.clear();
}

int complete(ibv_qp_ex* handle) {
  Qp& qp = Qp::of(handle);
  finish_wqe(qp);
  const int error = qp.batch.error;
  if (qp.send) {
    if (error != 0) qp.send->rollback(qp.batch.start);
    ring_send(qp);
  }
  if (!qp.bindings.empty()) end_bindings(qp, error == 0);
  release_send(qp);
  return error != 0 ? errno = error : 0;
}

void abort(ibv_qp_ex* handle) {
  Qp& qp = Qp::of(handle);
  if (qp.send) qp.send->rollback(qp.batch.start);
  qp.bindings.clear();
  release_send(qp);
}

void refuse(ibv_qp_ex* qp) { latch(Qp::of(qp), EOPNOTSUPP); }

void fill_builders(Qp& qp) {
  qp.wr_send = [](ibv_qp_ex* at) { begin_wqe(Qp::of(at), abi::SendOpcode::send); };
  qp.wr_send_imm = [](ibv_qp_ex* at, __be32 immediate) {
    begin_wqe(Qp::of(at), abi::SendOpcode::send_with_imm, __builtin_bswap32(immediate));
  };
  qp.wr_send_inv = [](ibv_qp_ex* at, std::uint32_t rkey) {
    begin_wqe(Qp::of(at), abi::SendOpcode::send_with_inv, rkey);
  };
  qp.wr_rdma_write = [](ibv_qp_ex* at, std::uint32_t rkey, std::uint64_t address) {
    begin_rdma(at, abi::SendOpcode::write, rkey, address);
  };
  qp.wr_rdma_write_imm = [](ibv_qp_ex* at, std::uint32_t rkey, std::uint64_t address, __be32 immediate) {
    begin_rdma(at, abi::SendOpcode::write_with_imm, rkey, address, immediate);
  };
  qp.wr_rdma_read = [](ibv_qp_ex* at, std::uint32_t rkey, std::uint64_t address) {
    begin_rdma(at, abi::SendOpcode::read, rkey, address);
  };
  qp.wr_atomic_cmp_swp = [](ibv_qp_ex* at, std::uint32_t rkey, std::uint64_t address, std::uint64_t compare,
                            std::uint64_t swap) {
    begin_atomic(at, abi::SendOpcode::compare_swap, rkey, address, swap, compare);
  };
  qp.wr_atomic_fetch_add = [](ibv_qp_ex* at, std::uint32_t rkey, std::uint64_t address, std::uint64_t add) {
    begin_atomic(at, abi::SendOpcode::fetch_add, rkey, address, add, 0);
  };
  // Calls without a setter: the WQE is complete.
  qp.wr_atomic_write = [](ibv_qp_ex* at, std::uint32_t rkey, std::uint64_t address, const void* word) {
    Qp& own = Qp::of(at);
    if (!begin_rdma(at, abi::SendOpcode::atomic_write, rkey, address)) return;
    own.batch.has_data = true;
    own.builder.begin_inline();
    own.builder.inline_bytes({static_cast<const std::byte*>(word), sizeof(std::uint64_t)});
    own.builder.end_inline();
  };
  qp.wr_local_inv = [](ibv_qp_ex* at, std::uint32_t rkey) {
    Qp& own = Qp::of(at);
    if (begin_wqe(own, abi::SendOpcode::local_inv, rkey)) own.batch.has_data = true;
  };
  qp.wr_bind_mw = [](ibv_qp_ex* at, ibv_mw* mw, std::uint32_t rkey, const ibv_mw_bind_info* info) {
    Qp& own = Qp::of(at);
    if (!begin_wqe(own, abi::SendOpcode::bind_window)) return;
    own.batch.has_data = true;
    if (const int error = add_binding(mw, rkey, *info, own.builder)) return latch(own, error);
    own.bindings.push_back({mw, rkey});
  };
  qp.wr_send_tso = [](ibv_qp_ex* at, void* headers, std::uint16_t header_bytes, std::uint16_t mss) {
    Qp& own = Qp::of(at);
    if (!begin_wqe(own, abi::SendOpcode::tso)) return;
    if (const int error = add_segmentation(own, headers, header_bytes, mss, own.builder)) latch(own, error);
  };
}

void fill_setters(Qp& qp) {
  qp.wr_set_sge = [](ibv_qp_ex* at, std::uint32_t lkey, std::uint64_t address, std::uint32_t length) {
    const ibv_sge sge{.addr = address, .length = length, .lkey = lkey};
    set_segments(at, {&sge, 1});
  };
  qp.wr_set_sge_list = [](ibv_qp_ex* at, std::size_t count, const ibv_sge* list) { set_segments(at, {list, count}); };
  qp.wr_set_inline_data = [](ibv_qp_ex* at, void* data, std::size_t length) {
    const ibv_data_buf piece{.addr = data, .length = length};
    set_inline(at, {&piece, 1});
  };
  qp.wr_set_inline_data_list = [](ibv_qp_ex* at, std::size_t count, const ibv_data_buf* list) {
    set_inline(at, {list, count});
  };
  qp.wr_set_ud_addr = set_address;
  qp.wr_set_xrc_srqn = set_shared_queue;
}

// Operations that transport or device lack cannot be requested at creation. A program that calls one anyway gets an
// error.
void fill_refusals(Qp& qp) {
  if (qp.qp_base.qp_type != IBV_QPT_XRC_SEND) qp.wr_set_xrc_srqn = [](ibv_qp_ex* at, std::uint32_t) { refuse(at); };
  if (qp.qp_base.qp_type != IBV_QPT_UD)
    qp.wr_set_ud_addr = [](ibv_qp_ex* at, ibv_ah*, std::uint32_t, std::uint32_t) { refuse(at); };
  if (!qp.does(IBV_QP_EX_WITH_ATOMIC_WRITE))
    qp.wr_atomic_write = [](ibv_qp_ex* at, std::uint32_t, std::uint64_t, const void*) { refuse(at); };
  if (!qp.does(IBV_QP_EX_WITH_TSO))
    qp.wr_send_tso = [](ibv_qp_ex* at, void*, std::uint16_t, std::uint16_t) { refuse(at); };
  if (!qp.does(IBV_QP_EX_WITH_SEND_WITH_IMM)) qp.wr_send_imm = [](ibv_qp_ex* at, __be32) { refuse(at); };
  if (!qp.does(IBV_QP_EX_WITH_SEND_WITH_INV)) qp.wr_send_inv = [](ibv_qp_ex* at, std::uint32_t) { refuse(at); };
  if (!qp.does(IBV_QP_EX_WITH_LOCAL_INV)) qp.wr_local_inv = [](ibv_qp_ex* at, std::uint32_t) { refuse(at); };
  if (!qp.does(IBV_QP_EX_WITH_BIND_MW))
    qp.wr_bind_mw = [](ibv_qp_ex* at, ibv_mw*, std::uint32_t, const ibv_mw_bind_info*) { refuse(at); };
  if (!qp.does(IBV_QP_EX_WITH_RDMA_WRITE))
    qp.wr_rdma_write = [](ibv_qp_ex* at, std::uint32_t, std::uint64_t) { refuse(at); };
  if (!qp.does(IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM))
    qp.wr_rdma_write_imm = [](ibv_qp_ex* at, std::uint32_t, std::uint64_t, __be32) { refuse(at); };
  if (!qp.does(IBV_QP_EX_WITH_RDMA_READ))
    qp.wr_rdma_read = [](ibv_qp_ex* at, std::uint32_t, std::uint64_t) { refuse(at); };
  if (!qp.does(IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP))
    qp.wr_atomic_cmp_swp = [](ibv_qp_ex* at, std::uint32_t, std::uint64_t, std::uint64_t, std::uint64_t) {
      refuse(at);
    };
  if (!qp.does(IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD))
    qp.wr_atomic_fetch_add = [](ibv_qp_ex* at, std::uint32_t, std::uint64_t, std::uint64_t) { refuse(at); };
}

template <class Call>
void unset(Qp& qp, std::uint64_t asked, ibv_qp_create_send_ops_flags operation, Call ibv_qp_ex::*call) {
  if (qp.does(operation) && !(asked & operation)) qp.*call = nullptr;
}

// As in mlx5: operations that were not requested at creation have a null pointer.
void unset_unasked(Qp& qp, std::uint64_t asked) {
  unset(qp, asked, IBV_QP_EX_WITH_SEND, &ibv_qp_ex::wr_send);
  unset(qp, asked, IBV_QP_EX_WITH_SEND_WITH_IMM, &ibv_qp_ex::wr_send_imm);
  unset(qp, asked, IBV_QP_EX_WITH_SEND_WITH_INV, &ibv_qp_ex::wr_send_inv);
  unset(qp, asked, IBV_QP_EX_WITH_RDMA_WRITE, &ibv_qp_ex::wr_rdma_write);
  unset(qp, asked, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, &ibv_qp_ex::wr_rdma_write_imm);
  unset(qp, asked, IBV_QP_EX_WITH_RDMA_READ, &ibv_qp_ex::wr_rdma_read);
  unset(qp, asked, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, &ibv_qp_ex::wr_atomic_cmp_swp);
  unset(qp, asked, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, &ibv_qp_ex::wr_atomic_fetch_add);
  unset(qp, asked, IBV_QP_EX_WITH_ATOMIC_WRITE, &ibv_qp_ex::wr_atomic_write);
  unset(qp, asked, IBV_QP_EX_WITH_LOCAL_INV, &ibv_qp_ex::wr_local_inv);
  unset(qp, asked, IBV_QP_EX_WITH_BIND_MW, &ibv_qp_ex::wr_bind_mw);
  unset(qp, asked, IBV_QP_EX_WITH_TSO, &ibv_qp_ex::wr_send_tso);
}

}  // namespace

void fill_work_request_api(Qp& qp, std::uint64_t asked) {
  fill_builders(qp);
  fill_setters(qp);
  fill_refusals(qp);
  unset_unasked(qp, asked);
  qp.wr_start = start;
  qp.wr_complete = complete;
  qp.wr_abort = abort;
}

}  // namespace rnicsim::verbs
