// SPDX-License-Identifier: Apache-2.0
// Posting to the receive queue of a QP, or to a shared one.
#include <infiniband/verbs.h>

#include <cstdint>
#include <span>

#include "verbs/ibverbs/objects.h"
#include "verbs/ibverbs/posting/work_request_list.h"

namespace rnicsim::verbs {

namespace {

bool may_post_receive(ibv_qp_state state) { return state != IBV_QPS_RESET && state != IBV_QPS_UNKNOWN; }

// Adds an entry to the ring, which has room.
template <class Ring>
int put_receive(Ring& ring, std::uint32_t max_sge, CpuTime& cpu, const ibv_recv_wr& wr) {
  if (wr.num_sge < 0 || std::uint32_t(wr.num_sge) > max_sge) return EINVAL;
  const std::span segments(wr.sg_list, std::size_t(wr.num_sge));
  for (const ibv_sge& sge : segments) {
    if (sge.length > kMaxSegmentBytes) return EINVAL;
  }
  ring.open(wr.wr_id);
  for (const ibv_sge& sge : segments) ring.segment(sge.addr, sge.length, sge.lkey);
  ring.close();
  cpu.charge(abi::CpuCost::post_recv);
  return 0;
}

int post_one(Qp& qp, const ibv_recv_wr& wr) {
  if (qp.receive->full()) return ENOMEM;
  return put_receive(*qp.receive, qp.capabilities.max_recv_sge, qp.owner().port, wr);
}

int post_one(Srq& srq, const ibv_recv_wr& wr) {
  if (srq.ring.outstanding() >= srq.max_wr) return ENOMEM;
  return put_receive(srq.ring, srq.max_sge, srq.owner().port, wr);
}

// Posts a list, and reports it to an observer that follows work requests: `posting` names the queue.
template <class Queue, class Ring>
int post_reported(Queue& queue, Ring& ring, abi::Milestone posting, ibv_recv_wr* list, ibv_recv_wr** bad) {
  FollowUp& follow_up = queue.owner().port;
  const bool followed = follow_up.followed();
  if (followed) {
    posting.time = follow_up.time();
    posting.position = ring.next();
  }
  const int result = post_list(list, bad, [&](const ibv_recv_wr& wr) {
    const int error = post_one(queue, wr);
    if (error == 0) ++posting.count;
    return error;
  });
  if (followed && posting.count != 0) follow_up.tell(posting);
  return result;
}

// A receive queue has no doorbell: the device reads the doorbell record when a message arrives. No message arrives at
// a QP in ERR, but its receives must be flushed. A send doorbell with the old producer index makes the device read the
// record. Called with send_lock held.
void announce_receives(Qp& qp) {
  CpuTime& cpu = qp.owner().port;
  qp.page->pass_lock(cpu);
  qp.page->uar.ring_send(qp.qp_base.qp_num, qp.send ? qp.send->rung() : 0);
  cpu.charge(abi::CpuCost::mmio_write);
}

}  // namespace

void flush_unseen_receives(Qp& qp) {
  if (!qp.posted_unseen || !qp.send_lock.try_lock()) return;
  if (qp.posted_unseen.exchange(false)) announce_receives(qp);
  qp.send_lock.unlock(qp.owner().port);
}

int post_receive(ibv_qp* handle, ibv_recv_wr* list, ibv_recv_wr** bad) {
  Qp& qp = Qp::of(handle);
  if (qp.owner().port.inherited()) return refuse(list, bad, ENODEV);
  const bool has_queue = handle->srq == nullptr && qp.table == nullptr && !qp.of_xrc();
  if (!has_queue || !may_post_receive(handle->state)) return refuse(list, bad, EINVAL);
  if (!qp.receive) return refuse(list, bad, ENOMEM);
  QueueGuard guard(qp.receive_lock, qp.owner().port);
  const int error = post_reported(qp, *qp.receive,
                                  {.queue = qp.qp_base.qp_num, .kind = abi::MilestoneKind::posted_receives}, list, bad);
  qp.receive->ring();
  qp.posted_unseen = true;
  if (qp.failed || handle->state == IBV_QPS_ERR) flush_unseen_receives(qp);
  return error;
}

int post_srq_receive(ibv_srq* handle, ibv_recv_wr* list, ibv_recv_wr** bad) {
  Srq& srq = Srq::of(handle);
  if (srq.owner().port.inherited()) return refuse(list, bad, ENODEV);
  QueueGuard guard(srq.lock, srq.owner().port);
  const int error = post_reported(srq, srq.ring,
                                  {.queue = srq.handle, .kind = abi::MilestoneKind::posted_shared_receives}, list, bad);
  srq.ring.ring();
  return error;
}

}  // namespace rnicsim::verbs
