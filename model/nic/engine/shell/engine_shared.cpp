// SPDX-License-Identifier: Apache-2.0
// Receives of a shared queue in the engine shell: one receive is taken for each message that begins. A receive that no
// message will complete goes back, so that each posted receive completes once.
#include <utility>

#include "model/nic/engine/shell/engine_shell.h"

namespace rnicsim::nic {

void EngineShell::ask_for_shared(Qp& qp, bool looks) {
  if (std::exchange(qp.shared.asked, true)) return;
  const auto tag = issue(qp, Purpose::shared_receive);
  if (!qp.of_domain()) return out_.srq_take({tag, qp.qpn, qp.context.srqn});
  out_.srq_take({tag, qp.qpn, *qp.next_request().headers().xrc_srqn, qp.context.xrcd, looks});
}

// XRC: the domain of the keys of requests without a receive.
void EngineShell::want_queue(Qp& qp) { ask_for_shared(qp, true); }

void EngineShell::queue_known(Qp& qp, const SrqTaken& taken) {
  qp.named.found = taken.refused ? roce::Offer::Queue::refused : roce::Offer::Queue::known;
  qp.named.pd = taken.pd;
  if (qp.looks_for_receive) return receives_settled(qp);
  qp.asked = false;
  pump_inbound(qp);
}

void EngineShell::take_shared(SrqTaken& taken) {
  const auto [qp, purpose, argument] = redeem(taken.tag);
  if (qp == nullptr) {
    if (taken.receive) out_.srq_give_back({taken.qpn, taken.srqn, taken.life, taken.receive->index});
    return;
  }
  qp->shared.asked = false;
  if (taken.receive) {
    qp->shared.life = taken.life;
    qp->shared.pd = taken.pd;
    qp->shared.srqn = taken.srqn;
    qp->shared.cqn = taken.cqn;
    trace_.wqe_taken(
        {qp->qpn, QueueKind::shared_receive, taken.receive->index, SendOpcode::nop, taken.receive->bytes, false});
    qp->receive_ring.hold(std::move(*taken.receive));
  }
  if (qp->state == roce::QpState::error) return flush_shared(*qp);
  if (taken.failed) {
    out_.event({EventType::qp_fatal, qp->qpn.value});
    return fail(*qp);
  }
  qp->of_domain() ? queue_known(*qp, taken) : receives_settled(*qp);
  schedule(*qp);
}

void EngineShell::give_back(const Qp& qp, std::uint16_t index) {
  out_.srq_give_back({qp.qpn, qp.of_domain() ? qp.shared.srqn : qp.context.srqn, qp.shared.life, index});
}

void EngineShell::give_back_held(Qp& qp) {
  while (const auto index = qp.receive_ring.release()) give_back(qp, *index);
}

// The QP is destroyed or reset: receives of its incomplete messages go back, too.
void EngineShell::give_back_all(Qp& qp) {
  for (const auto& [write, index, pending_answer] : qp.cqes)
    qp.of_domain() ? out_.srq_give_back({qp.qpn, write.cqe.source_qpn, write.life, index}) : give_back(qp, index);
  if (const auto& filling = qp.receive_ring.filling()) give_back(qp, filling->index);
  qp.receive_ring.filled();
  give_back_held(qp);
}

// In the error state: the receive that a message had begun to fill completes, and the QP takes no other.
void EngineShell::flush_shared(Qp& qp) {
  if (const auto& filling = qp.receive_ring.filling())
    flush_receive(receive_error(qp, filling->index, roce::Status::flushed_error));
  qp.receive_ring.filled();
  give_back_held(qp);
  if (qp.shared.asked) return;
  EventOut last{EventType::last_wqe_reached, qp.qpn.value};
  if (qp.of_domain() && qp.shared.life != 0) last.behind = qp.shared.cqn;
  out_.event(std::move(last));
}

}  // namespace rnicsim::nic
