// SPDX-License-Identifier: Apache-2.0
// Polling a CQ, with struct ibv_wc and with the extended calls.
#include "verbs/linux/provider/objects.h"

namespace rnicsim::linux_provider {

namespace {

bool carries_invalidation(const abi::Cqe& cqe) {
  return provider::opcode_of(cqe) == abi::CqeOpcode::receive_send_with_inv;
}

// Immediate data keeps the byte order of the wire; an invalidated rkey is a number in CPU order.
std::uint32_t immediate_or_rkey(const abi::Cqe& cqe) {
  const std::uint32_t value = cqe.immediate;
  return carries_invalidation(cqe) ? value : __builtin_bswap32(value);
}

// QPN of a datagram's sender; 0 for other transports.
std::uint32_t source_qpn(const abi::Cqe& cqe) {
  return std::uint32_t(cqe.source_qpn[0]) << 16 | std::uint32_t(cqe.source_qpn[1]) << 8 | cqe.source_qpn[2];
}

ibv_wc_opcode opcode_of(const abi::Cqe& cqe) {
  if (provider::opcode_of(cqe) == abi::CqeOpcode::receive_write_with_imm) return IBV_WC_RECV_RDMA_WITH_IMM;
  if (!provider::is_requester(cqe)) return IBV_WC_RECV;
  switch (cqe.send_opcode) {
    case abi::SendOpcode::write:
    case abi::SendOpcode::write_with_imm: return IBV_WC_RDMA_WRITE;
    case abi::SendOpcode::read: return IBV_WC_RDMA_READ;
    case abi::SendOpcode::compare_swap: return IBV_WC_COMP_SWAP;
    case abi::SendOpcode::fetch_add: return IBV_WC_FETCH_ADD;
    case abi::SendOpcode::local_inv: return IBV_WC_LOCAL_INV;
    case abi::SendOpcode::atomic_write: return IBV_WC_ATOMIC_WRITE;
    case abi::SendOpcode::bind_window: return IBV_WC_BIND_MW;
    default: return IBV_WC_SEND;
  }
}

unsigned flags_of(const abi::Cqe& cqe) {
  const auto opcode = provider::opcode_of(cqe);
  const bool immediate =
      opcode == abi::CqeOpcode::receive_write_with_imm || opcode == abi::CqeOpcode::receive_send_with_imm;
  return (immediate ? unsigned(IBV_WC_WITH_IMM) : 0u) | (carries_invalidation(cqe) ? unsigned(IBV_WC_WITH_INV) : 0u) |
         (cqe.flags & abi::Cqe::kGrh ? unsigned(IBV_WC_GRH) : 0u);
}

void fill(const abi::Cqe& cqe, std::uint64_t wr_id, ibv_wc& wc) {
  wc.wr_id = wr_id;
  wc.status = ibv_wc_status(cqe.syndrome);
  wc.vendor_err = cqe.vendor_error;
  wc.qp_num = cqe.qpn;
  if (provider::is_error(cqe)) return;  // nothing else is valid
  wc.opcode = opcode_of(cqe);
  wc.wc_flags = flags_of(cqe);
  wc.byte_len = cqe.byte_count;
  wc.imm_data = immediate_or_rkey(cqe);
  wc.src_qp = source_qpn(cqe);
  wc.pkey_index = 0;
  wc.slid = 0;
  wc.sl = 0;
  wc.dlid_path_bits = 0;
}

// The QP of a CQE. Called with the CQ's lock held.
Qp* find_user(Cq& cq, const abi::Cqe& cqe) {
  if (cq.last_user != nullptr && cq.last_user->qp.qp_num == cqe.qpn) return cq.last_user;
  const auto found = cq.users.find(cqe.qpn);
  cq.last_user = found != cq.users.end() ? found->second : nullptr;
  return cq.last_user;
}

// Completes the work request of a taken CQE: returns its wr_id and frees its entry.
std::uint64_t settle(Cq& cq, const abi::Cqe& cqe) {
  Qp* qp = find_user(cq, cqe);
  if (qp == nullptr) return 0;
  const bool requester = provider::is_requester(cqe);
  // A failed send of UC or UD stops only the send queue, so the QP does not move to ERR.
  if (provider::is_error(cqe) && (!requester || qp->qp.qp_type == IBV_QPT_RC)) {
    qp->failed = true;
    flush_unseen_receives(*qp);
  }
  if (requester) return qp->send ? qp->send->retire(cqe.wqe_counter) : 0;
  if (Srq* srq = qp->shared()) return retire_shared(*srq, cqe.wqe_counter);
  return qp->receive ? qp->receive->retire(cqe.wqe_counter) : 0;
}

// --- The extended poll. The caller holds the CQ's lock between start_poll and end_poll.
bool advance(Cq& cq) {
  const auto cqe = cq.ring.take();
  if (!cqe) return false;
  cq.current = *cqe;
  cq.cq_ex.wr_id = settle(cq, cq.current);
  cq.cq_ex.status = ibv_wc_status(cq.current.syndrome);
  return true;
}

int start_poll(ibv_cq_ex* handle, ibv_poll_cq_attr* attributes) {
  if (attributes->comp_mask != 0) return EINVAL;
  Cq& cq = Cq::of(handle);
  cq.lock.lock();
  if (advance(cq)) return 0;
  cq.lock.unlock();
  return ENOENT;
}

int next_poll(ibv_cq_ex* cq) { return advance(Cq::of(cq)) ? 0 : ENOENT; }

void end_poll(ibv_cq_ex* cq) {
  Cq::of(cq).ring.release();
  Cq::of(cq).lock.unlock();
}

}  // namespace

int poll_cq(ibv_cq* handle, int capacity, ibv_wc* completions) {
  Cq& cq = Cq::of(handle);
  QueueGuard guard(cq.lock);
  int count = 0;
  while (count < capacity) {
    const auto cqe = cq.ring.take();
    if (!cqe) break;
    fill(*cqe, settle(cq, *cqe), completions[count++]);
  }
  cq.ring.release();
  return count;
}

void fill_extended_poll(Cq& cq, std::uint64_t fields) {
  ibv_cq_ex& calls = cq.cq_ex;
  calls.start_poll = start_poll;
  calls.next_poll = next_poll;
  calls.end_poll = end_poll;
  calls.read_opcode = [](ibv_cq_ex* at) { return opcode_of(Cq::of(at).current); };
  calls.read_vendor_err = [](ibv_cq_ex* at) { return std::uint32_t(Cq::of(at).current.vendor_error); };
  calls.read_wc_flags = [](ibv_cq_ex* at) { return flags_of(Cq::of(at).current); };
  if (fields & IBV_WC_EX_WITH_BYTE_LEN)
    calls.read_byte_len = [](ibv_cq_ex* at) { return std::uint32_t(Cq::of(at).current.byte_count); };
  if (fields & IBV_WC_EX_WITH_IMM)
    calls.read_imm_data = [](ibv_cq_ex* at) { return __be32(immediate_or_rkey(Cq::of(at).current)); };
  if (fields & IBV_WC_EX_WITH_QP_NUM)
    calls.read_qp_num = [](ibv_cq_ex* at) { return std::uint32_t(Cq::of(at).current.qpn); };
  if (fields & IBV_WC_EX_WITH_SRC_QP) calls.read_src_qp = [](ibv_cq_ex* at) { return source_qpn(Cq::of(at).current); };
  if (fields & IBV_WC_EX_WITH_SLID) calls.read_slid = [](ibv_cq_ex*) { return 0u; };
  if (fields & IBV_WC_EX_WITH_SL) calls.read_sl = [](ibv_cq_ex*) { return std::uint8_t(0); };
  if (fields & IBV_WC_EX_WITH_DLID_PATH_BITS) calls.read_dlid_path_bits = [](ibv_cq_ex*) { return std::uint8_t(0); };
  if (fields & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
    calls.read_completion_ts = [](ibv_cq_ex* at) { return std::uint64_t(Cq::of(at).current.timestamp); };
}

}  // namespace rnicsim::linux_provider
