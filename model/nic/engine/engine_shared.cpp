// The engine shell's receives from a shared queue: one is taken for each message that begins. What no message will
// complete goes back, so that whatever was posted comes out once.
#include <utility>

#include "model/nic/engine/engine_shell.h"

namespace rnicsim::nic {

void EngineShell::ask_for_shared(Qp& qp) {
  if (std::exchange(qp.shared.asked, true)) return;
  out_.srq_take({issue(qp, Purpose::shared_receive), qp.qpn, qp.context.srqn});
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
    trace_.wqe_taken({qp->qpn, QueueKind::shared_receive, taken.receive->index, SendOpcode::nop,
                      taken.receive->bytes, false});
    qp->receive_ring.hold(std::move(*taken.receive));
  }
  if (qp->state == roce::QpState::error) return flush_shared(*qp);
  if (taken.failed) {
    out_.event({EventType::qp_fatal, qp->qpn.value});
    return fail(*qp);
  }
  receives_settled(*qp);
  schedule(*qp);
}

void EngineShell::give_back(const Qp& qp, std::uint16_t index) {
  out_.srq_give_back({qp.qpn, qp.context.srqn, qp.shared.life, index});
}

void EngineShell::give_back_held(Qp& qp) {
  while (const auto index = qp.receive_ring.release()) give_back(qp, *index);
}

// The QP goes, and what it began goes with it.
void EngineShell::give_back_all(Qp& qp) {
  for (const auto& owed : qp.cqes) give_back(qp, owed.receive_index);
  if (const auto& filling = qp.receive_ring.filling()) give_back(qp, filling->index);
  qp.receive_ring.filled();
  give_back_held(qp);
}

// In the error state: the receive that a message had begun to fill completes, and the QP takes no other.
void EngineShell::flush_shared(Qp& qp) {
  if (const auto& filling = qp.receive_ring.filling()) flush_receive(qp, filling->index);
  qp.receive_ring.filled();
  give_back_held(qp);
  if (!qp.shared.asked) out_.event({EventType::last_wqe_reached, qp.qpn.value});
}

}  // namespace rnicsim::nic
