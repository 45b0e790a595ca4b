// SPDX-License-Identifier: Apache-2.0
// The ibv_wr_* interface. The caller holds the send queue between wr_start and wr_complete. A WQE is copied into the
// ring when the next one begins or the batch ends. The doorbell is rung by wr_complete.
#include <span>
#include <utility>

#include "verbs/linux/provider/objects.h"

namespace rnicsim::linux_provider {

namespace {

void latch(Qp& qp, int error) {
  if (qp.batch.error == 0) qp.batch.error = error;
}

void finish_wqe(Qp& qp) {
  if (!qp.batch.building) return;
  qp.batch.building = false;
  if (qp.qp.qp_type == IBV_QPT_UD && !qp.batch.has_address) latch(qp, EINVAL);
  if (!qp.builder.fits()) latch(qp, EINVAL);
  if (qp.batch.error == 0) qp.send->post(qp.builder, qp.batch.wr_id);
}

// Begins a WQE; `immediate` in CPU order. False: the batch has failed.
bool begin_wqe(Qp& qp, std::uint64_t operation, abi::SendOpcode opcode, std::uint32_t immediate = 0) {
  finish_wqe(qp);
  if (!qp.does(operation)) latch(qp, EOPNOTSUPP);
  if (!qp.send || qp.send->full()) latch(qp, ENOMEM);
  if (qp.batch.error != 0) return false;
  qp.batch.building = true;
  qp.batch.takes_inline = may_be_inline(opcode);
  qp.batch.has_data = qp.batch.has_address = false;
  qp.batch.wr_id = qp.qp_ex.wr_id;
  qp.builder.begin(opcode, control_flags(qp, qp.qp_ex.wr_flags), immediate);
  if (qp.qp.qp_type == IBV_QPT_UD) qp.builder.datagram();
  return true;
}

bool begin_rdma(ibv_qp_ex* handle, std::uint64_t operation, abi::SendOpcode opcode, std::uint32_t rkey,
                std::uint64_t address, __be32 immediate = 0) {
  Qp& qp = Qp::of(handle);
  if (!begin_wqe(qp, operation, opcode, __builtin_bswap32(immediate))) return false;
  qp.builder.remote_address(address, rkey);
  return true;
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
  const bool fits = qp.batch.building && qp.qp.qp_type == IBV_QPT_UD && ah != nullptr;
  if (!fits || std::exchange(qp.batch.has_address, true)) latch(qp, EINVAL);
  if (qp.batch.error == 0) qp.builder.set_datagram(datagram_of(*ah, remote_qpn, qkey));
}

void start(ibv_qp_ex* handle) {
  Qp& qp = Qp::of(handle);
  qp.send_lock.lock();
  qp.batch = {};
  if (!may_post_send(qp.qp.state)) latch(qp, EINVAL);
  if (!qp.send) return latch(qp, ENOMEM);
  qp.batch.start = qp.send->mark();
}

// The window gets its new rkey when the batch is posted.
void add_binding_to_batch(Qp& qp, ibv_mw* mw, std::uint32_t rkey, const ibv_mw_bind_info& info) {
  if (!begin_wqe(qp, IBV_QP_EX_WITH_BIND_MW, abi::SendOpcode::bind_window)) return;
  qp.batch.has_data = true;  // the WQE takes no setter
  const int error = guarded([&] {
    qp.batch.bindings.push_back({mw, rkey});
    return add_binding(mw, rkey, info, qp.builder);
  });
  if (error != 0) latch(qp, error);
}

int complete(ibv_qp_ex* handle) {
  Qp& qp = Qp::of(handle);
  finish_wqe(qp);
  const int error = qp.batch.error;
  if (!qp.send) {
    qp.send_lock.unlock();
    return error;
  }
  if (error != 0)
    qp.send->rollback(qp.batch.start);
  else
    for (const auto& [window, rkey] : qp.batch.bindings) take_rkey(*window, rkey);
  finish_sending(qp);
  return error;
}

void abort(ibv_qp_ex* handle) {
  Qp& qp = Qp::of(handle);
  if (qp.send) qp.send->rollback(qp.batch.start);
  qp.send_lock.unlock();
}

void fill_builders(ibv_qp_ex& calls) {
  calls.wr_send = [](ibv_qp_ex* at) { begin_wqe(Qp::of(at), IBV_QP_EX_WITH_SEND, abi::SendOpcode::send); };
  calls.wr_send_imm = [](ibv_qp_ex* at, __be32 immediate) {
    begin_wqe(Qp::of(at), IBV_QP_EX_WITH_SEND_WITH_IMM, abi::SendOpcode::send_with_imm, __builtin_bswap32(immediate));
  };
  calls.wr_send_inv = [](ibv_qp_ex* at, std::uint32_t rkey) {
    begin_wqe(Qp::of(at), IBV_QP_EX_WITH_SEND_WITH_INV, abi::SendOpcode::send_with_inv, rkey);
  };
  calls.wr_rdma_write = [](ibv_qp_ex* at, std::uint32_t rkey, std::uint64_t address) {
    begin_rdma(at, IBV_QP_EX_WITH_RDMA_WRITE, abi::SendOpcode::write, rkey, address);
  };
  calls.wr_rdma_write_imm = [](ibv_qp_ex* at, std::uint32_t rkey, std::uint64_t address, __be32 immediate) {
    begin_rdma(at, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, abi::SendOpcode::write_with_imm, rkey, address, immediate);
  };
  calls.wr_rdma_read = [](ibv_qp_ex* at, std::uint32_t rkey, std::uint64_t address) {
    begin_rdma(at, IBV_QP_EX_WITH_RDMA_READ, abi::SendOpcode::read, rkey, address);
  };
  calls.wr_atomic_cmp_swp = [](ibv_qp_ex* at, std::uint32_t rkey, std::uint64_t address, std::uint64_t compare,
                               std::uint64_t swap) {
    if (begin_rdma(at, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, abi::SendOpcode::compare_swap, rkey, address))
      Qp::of(at).builder.atomic(swap, compare);
  };
  calls.wr_atomic_fetch_add = [](ibv_qp_ex* at, std::uint32_t rkey, std::uint64_t address, std::uint64_t add) {
    if (begin_rdma(at, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, abi::SendOpcode::fetch_add, rkey, address))
      Qp::of(at).builder.atomic(add, 0);
  };
  // Calls without a setter: the WQE is complete.
  calls.wr_atomic_write = [](ibv_qp_ex* at, std::uint32_t rkey, std::uint64_t address, const void* word) {
    Qp& own = Qp::of(at);
    if (!begin_rdma(at, IBV_QP_EX_WITH_ATOMIC_WRITE, abi::SendOpcode::atomic_write, rkey, address)) return;
    own.batch.has_data = true;
    own.builder.begin_inline();
    own.builder.inline_bytes({static_cast<const std::byte*>(word), sizeof(std::uint64_t)});
    own.builder.end_inline();
  };
  calls.wr_local_inv = [](ibv_qp_ex* at, std::uint32_t rkey) {
    Qp& own = Qp::of(at);
    if (begin_wqe(own, IBV_QP_EX_WITH_LOCAL_INV, abi::SendOpcode::local_inv, rkey)) own.batch.has_data = true;
  };
  calls.wr_bind_mw = [](ibv_qp_ex* at, ibv_mw* mw, std::uint32_t rkey, const ibv_mw_bind_info* info) {
    add_binding_to_batch(Qp::of(at), mw, rkey, *info);
  };
}

void fill_setters(ibv_qp_ex& calls) {
  calls.wr_set_sge = [](ibv_qp_ex* at, std::uint32_t lkey, std::uint64_t address, std::uint32_t length) {
    const ibv_sge sge{.addr = address, .length = length, .lkey = lkey};
    set_segments(at, {&sge, 1});
  };
  calls.wr_set_sge_list = [](ibv_qp_ex* at, std::size_t count, const ibv_sge* list) {
    set_segments(at, {list, count});
  };
  calls.wr_set_inline_data = [](ibv_qp_ex* at, void* data, std::size_t length) {
    const ibv_data_buf piece{.addr = data, .length = length};
    set_inline(at, {&piece, 1});
  };
  calls.wr_set_inline_data_list = [](ibv_qp_ex* at, std::size_t count, const ibv_data_buf* list) {
    set_inline(at, {list, count});
  };
  calls.wr_set_ud_addr = set_address;
}

}  // namespace

void fill_work_request_api(Qp& qp) {
  fill_builders(qp.qp_ex);
  fill_setters(qp.qp_ex);
  qp.qp_ex.wr_start = start;
  qp.qp_ex.wr_complete = complete;
  qp.qp_ex.wr_abort = abort;
}

}  // namespace rnicsim::linux_provider
