// SPDX-License-Identifier: Apache-2.0
// Polling a CQ, with struct ibv_wc and with the extended calls.
#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "verbs/ibverbs/boundary.h"
#include "verbs/ibverbs/objects.h"

namespace rnicsim::verbs {

namespace {

bool carries_immediate(const abi::Cqe& cqe) {
  return provider::opcode_of(cqe) == abi::CqeOpcode::receive_write_with_imm ||
         provider::opcode_of(cqe) == abi::CqeOpcode::receive_send_with_imm;
}

bool carries_invalidation(const abi::Cqe& cqe) {
  return provider::opcode_of(cqe) == abi::CqeOpcode::receive_send_with_inv;
}

// Immediate data keeps the byte order of the wire; an invalidated rkey is a number in CPU order.
std::uint32_t immediate_or_rkey(const abi::Cqe& cqe) {
  const std::uint32_t value = cqe.immediate;
  return carries_invalidation(cqe) ? value : __builtin_bswap32(value);
}

std::uint32_t third_number(const abi::Cqe& cqe) {
  return std::uint32_t(cqe.source_qpn[0]) << 16 | std::uint32_t(cqe.source_qpn[1]) << 8 | cqe.source_qpn[2];
}

bool is_of_xrc_srq(const abi::Cqe& cqe) { return cqe.flags & abi::Cqe::kXrc; }

// QPN of a datagram's sender; 0 for other transports.
std::uint32_t source_qpn(const abi::Cqe& cqe) { return is_of_xrc_srq(cqe) ? 0 : third_number(cqe); }

// Tag of the flow that delivered a raw packet; 0 if none.
std::uint32_t flow_tag(const abi::Cqe& cqe) {
  return cqe.flags & abi::Cqe::kFlowTag ? std::uint32_t(cqe.immediate) : 0;
}

// VLAN tag that the device removed from a raw packet; 0 if none.
std::uint16_t vlan_tag(const abi::Cqe& cqe) {
  const bool datagram = (cqe.flags & abi::Cqe::kGrh) != 0;
  return cqe.flags & abi::Cqe::kVlan && !datagram ? std::uint16_t(cqe.vlan) : 0;
}

// RoCE has no service level. mlx5 reports here the version of a datagram's IP header, and UCX drops datagrams without
// it.
std::uint8_t service_level(const abi::Cqe& cqe) {
  constexpr std::uint8_t kIpv6Header = 1, kIpv4Header = 2;
  if (!(cqe.flags & abi::Cqe::kGrh)) return 0;
  return cqe.flags & abi::Cqe::kIpv4 ? kIpv4Header : kIpv6Header;
}

// Nanoseconds since 1970 on the host's real-time clock, computed from a completion's timestamp.
std::uint64_t wall_clock(const Context& context, std::uint64_t ticks) {
  constexpr std::uint64_t kNanosecondsPerSecond = 1'000'000'000;
  const std::uint64_t khz = context.capabilities.core_clock_khz;
  const std::uint64_t seconds = ticks / (khz * 1000), rest = ticks % (khz * 1000);
  return (context.port.epoch() + seconds) * kNanosecondsPerSecond + rest * 1'000'000 / khz;
}

void fill(const abi::Cqe& cqe, std::uint64_t wr_id, ibv_wc& wc) {
  wc.wr_id = wr_id;
  wc.status = ibv_wc_status(cqe.syndrome);
  wc.vendor_err = cqe.vendor_error;
  wc.qp_num = cqe.qpn;
  if (provider::is_error(cqe)) return;  // nothing else is valid
  wc.opcode = work_completion_opcode(cqe);
  wc.wc_flags = work_completion_flags(cqe);
  wc.byte_len = cqe.byte_count;
  wc.imm_data = immediate_or_rkey(cqe);
  wc.src_qp = source_qpn(cqe);
  wc.pkey_index = 0;
  wc.slid = 0;
  wc.sl = service_level(cqe);
  wc.dlid_path_bits = 0;
}

// Place of the bytes that a data segment names. `place`: in memory; `on_device`: offset in device memory; neither: a
// null region, which discards them. Not `found`: no region of this context has them.
struct Location {
  bool found = false;
  void* place = nullptr;
  std::optional<std::uint64_t> on_device;
};
Location locate(Context& context, const abi::DataSegment& segment, std::uint32_t bytes) {
  const std::uint32_t lkey = segment.lkey;
  Location location;
  context.mrs.with(lkey >> 8, [&](const Mr& mr) {
    const std::uint64_t offset = segment.address - mr.start;
    const bool within = offset <= mr.length && bytes <= mr.length - offset;
    if (mr.lkey != lkey || (!mr.null && !within)) return;
    location.found = true;
    if (mr.on_device)
      location.on_device = mr.bus_address + offset;
    else if (!mr.null)
      location.place = static_cast<std::byte*>(mr.addr) + offset;
  });
  return location;
}

// Copies the payload in a CQE to the receive's segments. The device has checked their total length but not their keys.
// False: an invalid key.
bool place_inline_data(Qp& qp, const abi::Cqe& cqe) {
  Context& context = qp.owner();
  context.port.charge(abi::CpuCost::inline_receive);
  const std::uint8_t* from = cqe.inline_data;
  std::uint32_t left = cqe.byte_count;
  Srq* srq = qp.shared();
  const auto segments = srq != nullptr ? srq->ring.segments(cqe.wqe_counter) : qp.receive->segments(cqe.wqe_counter);
  for (const abi::DataSegment& segment : segments) {
    const auto bytes = std::min<std::uint32_t>(left, segment.byte_count);
    if (bytes == 0) continue;
    const auto [found, to, on_device] = locate(context, segment, bytes);
    if (!found) return false;
    if (on_device)
      store_on_device(context.port, *on_device, from, bytes);
    else if (to != nullptr)
      std::memcpy(to, from, bytes);
    from += bytes;
    left -= bytes;
  }
  return true;
}

// The QP of a CQE. Called with the CQ's lock held.
Qp* find_user(Cq& cq, const abi::Cqe& cqe) {
  if (cq.last_user != nullptr && cq.last_user->qp_base.qp_num == cqe.qpn) return cq.last_user;
  const auto found = cq.users.find(cqe.qpn);
  cq.last_user = found != cq.users.end() ? found->second : nullptr;
  return cq.last_user;
}

void note_failure(Qp& qp) {
  qp.failed = true;
  flush_unseen_receives(qp);
}

// Completes the work request: returns its wr_id and frees its entry.
std::uint64_t retire(Qp* qp, const abi::Cqe& cqe) {
  if (qp == nullptr) return 0;
  const bool requester = provider::is_requester(cqe);
  // A failed send of UC or UD stops only the send queue, so the QP does not move to ERR.
  const bool reliable = qp->qp_base.qp_type == IBV_QPT_RC || qp->qp_base.qp_type == IBV_QPT_XRC_SEND;
  if (provider::is_error(cqe) && (!requester || reliable)) note_failure(*qp);
  if (requester) return qp->send ? qp->send->retire(cqe.wqe_counter) : 0;
  if (Srq* srq = qp->shared()) return retire_shared(*srq, cqe.wqe_counter);
  return qp->receive ? qp->receive->retire(cqe.wqe_counter) : 0;
}

// For a receive of an XRC SRQ, whose QP may belong to another process.
std::uint64_t retire_of_domain(Cq& cq, const abi::Cqe& cqe) {
  const auto srq = cq.shared.find(third_number(cqe));
  return srq != cq.shared.end() ? retire_shared(*srq->second, cqe.wqe_counter) : 0;
}

// Completes a taken CQE, with inline data; returns its wr_id.
std::uint64_t settle(Cq& cq, abi::Cqe& cqe) {
  if (is_of_xrc_srq(cqe)) return retire_of_domain(cq, cqe);
  Qp* qp = find_user(cq, cqe);
  const bool brings_data = qp != nullptr && (cqe.flags & abi::Cqe::kInlineData);
  if (brings_data && !place_inline_data(*qp, cqe)) {
    cqe.opcode_owner = std::uint8_t(abi::CqeOpcode::responder_error) << 4;
    cqe.syndrome = abi::CqeSyndrome::local_protection_error;
  }
  return retire(qp, cqe);
}

int take(Cq& cq, int capacity, ibv_wc* completions) {
  QueueGuard guard(cq.lock, cq.owner().port);
  int count = 0;
  while (count < capacity) {
    auto cqe = cq.ring.take();
    if (!cqe) break;
    const std::uint64_t wr_id = settle(cq, *cqe);
    fill(*cqe, wr_id, completions[count++]);
  }
  cq.ring.release();
  return count;
}

void tell_polled(Cq& cq, int count) {
  FollowUp& follow_up = cq.owner().port;
  if (!follow_up.followed()) return;
  follow_up.tell({.time = follow_up.time(),
                  .queue = cq.handle,
                  .position = cq.ring.consumer(),
                  .count = std::uint32_t(count),
                  .kind = abi::MilestoneKind::polled});
}

// --- The extended poll. The caller holds the CQ's lock between start_poll and end_poll.
void lock(Cq& cq) {
  if (!cq.single_threaded) cq.lock.lock(cq.owner().port);
}

void unlock(Cq& cq) {
  if (!cq.single_threaded) cq.lock.unlock(cq.owner().port);
}

bool advance(Cq& cq, bool looks) {
  const auto cqe = cq.ring.take();
  DevicePort& port = cq.owner().port;
  if (looks) port.end_look(bool(cqe));
  if (!cqe) return false;
  cq.current = *cqe;
  cq.wr_id = settle(cq, cq.current);
  cq.status = ibv_wc_status(cq.current.syndrome);
  port.charge(abi::CpuCost::poll_cqe);
  tell_polled(cq, 1);
  return true;
}

bool try_start(Cq& cq) {
  lock(cq);
  if (advance(cq, true)) return true;
  unlock(cq);
  return false;
}

int start_poll(ibv_cq_ex* handle, ibv_poll_cq_attr* attributes) {
  if (attributes->comp_mask != 0) return EINVAL;
  Cq& cq = Cq::of(handle);
  DevicePort& port = cq.owner().port;
  if (port.inherited()) return ENODEV;
  port.begin_look(abi::CpuCost::poll_cq);
  if (try_start(cq)) return 0;
  port.look(__builtin_return_address(0));
  return try_start(cq) ? 0 : ENOENT;
}

int next_poll(ibv_cq_ex* cq) { return advance(Cq::of(cq), false) ? 0 : ENOENT; }

void end_poll(ibv_cq_ex* cq) {
  Cq::of(cq).ring.release();
  unlock(Cq::of(cq));
}

}  // namespace

ibv_wc_opcode work_completion_opcode(const abi::Cqe& cqe) {
  if (provider::opcode_of(cqe) == abi::CqeOpcode::receive_write_with_imm) return IBV_WC_RECV_RDMA_WITH_IMM;
  if (!provider::is_requester(cqe)) return IBV_WC_RECV;
  switch (cqe.send_opcode) {
    case abi::SendOpcode::write:
    case abi::SendOpcode::write_with_imm: return IBV_WC_RDMA_WRITE;
    case abi::SendOpcode::read: return IBV_WC_RDMA_READ;
    case abi::SendOpcode::compare_swap: return IBV_WC_COMP_SWAP;
    case abi::SendOpcode::fetch_add: return IBV_WC_FETCH_ADD;
    case abi::SendOpcode::local_inv: return IBV_WC_LOCAL_INV;
    case abi::SendOpcode::bind_window: return IBV_WC_BIND_MW;
    case abi::SendOpcode::tso: return IBV_WC_TSO;
    case abi::SendOpcode::atomic_write: return IBV_WC_ATOMIC_WRITE;
    // fast_register: used in the kernel only.
    case abi::SendOpcode::fast_register:
    case abi::SendOpcode::nop:
    case abi::SendOpcode::send:
    case abi::SendOpcode::send_with_imm:
    case abi::SendOpcode::send_with_inv: break;
  }
  return IBV_WC_SEND;
}

unsigned work_completion_flags(const abi::Cqe& cqe) {
  return (carries_immediate(cqe) ? unsigned(IBV_WC_WITH_IMM) : 0u) |
         (carries_invalidation(cqe) ? unsigned(IBV_WC_WITH_INV) : 0u) |
         (cqe.flags & abi::Cqe::kGrh ? unsigned(IBV_WC_GRH) : 0u) |
         (cqe.flags & abi::Cqe::kChecksumsRight ? unsigned(IBV_WC_IP_CSUM_OK) : 0u);
}

int poll_cq(ibv_cq* handle, int capacity, ibv_wc* completions) {
  if (capacity <= 0) return 0;
  Cq& cq = Cq::of(handle);
  DevicePort& port = cq.owner().port;
  if (port.inherited()) {
    errno = ENODEV;
    return -1;
  }
  port.begin_look(abi::CpuCost::poll_cq);
  int count = take(cq, capacity, completions);
  if (count == 0) {
    port.look(__builtin_return_address(0));
    count = take(cq, capacity, completions);
  }
  port.end_look(count > 0);
  if (count > 0) {
    port.charge(abi::CpuCost::poll_cqe, std::uint32_t(count));
    tell_polled(cq, count);
  }
  return count;
}

void declare_looks(CpuTime& cpu) {
  cpu.declare_look(reinterpret_cast<const void*>(&poll_cq), 0);
  cpu.declare_look(reinterpret_cast<const void*>(&start_poll), ENOENT);
}

void fill_extended_poll(Cq& cq, std::uint64_t fields) {
  cq.start_poll = start_poll;
  cq.next_poll = next_poll;
  cq.end_poll = end_poll;
  cq.read_opcode = [](ibv_cq_ex* at) { return work_completion_opcode(Cq::of(at).current); };
  cq.read_vendor_err = [](ibv_cq_ex* at) { return std::uint32_t(Cq::of(at).current.vendor_error); };
  cq.read_wc_flags = [](ibv_cq_ex* at) { return work_completion_flags(Cq::of(at).current); };
  if (fields & IBV_WC_EX_WITH_BYTE_LEN)
    cq.read_byte_len = [](ibv_cq_ex* at) { return std::uint32_t(Cq::of(at).current.byte_count); };
  if (fields & IBV_WC_EX_WITH_IMM)
    cq.read_imm_data = [](ibv_cq_ex* at) { return __be32(immediate_or_rkey(Cq::of(at).current)); };
  if (fields & IBV_WC_EX_WITH_QP_NUM)
    cq.read_qp_num = [](ibv_cq_ex* at) { return std::uint32_t(Cq::of(at).current.qpn); };
  if (fields & IBV_WC_EX_WITH_SRC_QP) cq.read_src_qp = [](ibv_cq_ex* at) { return source_qpn(Cq::of(at).current); };
  if (fields & IBV_WC_EX_WITH_SLID) cq.read_slid = [](ibv_cq_ex*) { return 0u; };
  if (fields & IBV_WC_EX_WITH_SL) cq.read_sl = [](ibv_cq_ex* at) { return service_level(Cq::of(at).current); };
  if (fields & IBV_WC_EX_WITH_DLID_PATH_BITS) cq.read_dlid_path_bits = [](ibv_cq_ex*) { return std::uint8_t(0); };
  if (fields & IBV_WC_EX_WITH_CVLAN) cq.read_cvlan = [](ibv_cq_ex* at) { return vlan_tag(Cq::of(at).current); };
  if (fields & IBV_WC_EX_WITH_FLOW_TAG) cq.read_flow_tag = [](ibv_cq_ex* at) { return flow_tag(Cq::of(at).current); };
  if (fields & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
    cq.read_completion_ts = [](ibv_cq_ex* at) { return std::uint64_t(Cq::of(at).current.timestamp); };
  if (fields & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
    cq.read_completion_wallclock_ns = [](ibv_cq_ex* at) {
      return wall_clock(Cq::of(at).owner(), Cq::of(at).current.timestamp);
    };
}

void attach_user(Cq& cq, Qp& qp) {
  QueueGuard guard(cq.lock, cq.owner().port);
  cq.users[qp.qp_base.qp_num] = &qp;
}

void forget_completions(Cq& cq, const Qp& qp) {
  QueueGuard guard(cq.lock, cq.owner().port);
  cq.ring.remove_if([&](const abi::Cqe& cqe) {
    if (cqe.qpn != qp.qp_base.qp_num) return false;
    // The QP's own rings are reset; a shared receive queue keeps its entries.
    if (qp.shared() != nullptr && !provider::is_requester(cqe)) retire_shared(*qp.shared(), cqe.wqe_counter);
    return true;
  });
}

void attach_user(Cq& cq, Srq& srq) {
  QueueGuard guard(cq.lock, cq.owner().port);
  cq.shared[srq.handle] = &srq;
}

// Completions of the SRQ's receives are removed, too.
void detach_user(Cq& cq, const Srq& srq) {
  QueueGuard guard(cq.lock, cq.owner().port);
  cq.ring.remove_if([&](const abi::Cqe& cqe) { return is_of_xrc_srq(cqe) && third_number(cqe) == srq.handle; });
  cq.shared.erase(srq.handle);
}

void detach_user(Cq& cq, const Qp& qp) {
  forget_completions(cq, qp);
  QueueGuard guard(cq.lock, cq.owner().port);
  cq.users.erase(qp.qp_base.qp_num);
  cq.last_user = nullptr;
}

}  // namespace rnicsim::verbs
