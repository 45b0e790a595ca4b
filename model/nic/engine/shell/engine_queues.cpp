// SPDX-License-Identifier: Apache-2.0
// The receive ring of the engine shell, and flushing both queues in the error state.
#include <utility>

#include "model/nic/engine/shell/engine_shell.h"

namespace rnicsim::nic {

void EngineShell::look_for_receives(Qp& qp) {
  if (qp.has_srq()) return ask_for_shared(qp);
  const auto read = qp.has_receive() ? qp.receive_ring.begin_read(qp.context) : std::nullopt;
  read ? read_ring(qp, QueueKind::receive, *read) : receives_settled(qp);
}

void EngineShell::receives_fetched(Qp& qp, const WqeBytes& wqes) {
  auto& ring = qp.receive_ring;
  const auto before = ring.held();
  const auto found = ring.end_read(wqes, qp.context);
  if (qp.state == roce::QpState::error) return flush_receives(qp);
  const bool wanted = qp.looks_for_receive || ring.low(qp.context);
  if (found == ReceiveRing::Found::posted && wanted) return look_for_receives(qp);
  if (found == ReceiveRing::Found::no_ring) {
    out_.event({EventType::qp_fatal, qp.qpn.value});
    return fail(qp);
  }
  for (auto i = before; i < ring.held(); ++i)
    trace_.wqe_taken({qp.qpn, QueueKind::receive, ring[i].index, SendOpcode::nop, ring[i].bytes, false});
  receives_settled(qp);
  // Read the producer in advance: the number of posted receives is then known when the held ones run low.
  if (found == ReceiveRing::Found::receives && ring.all_read()) look_for_receives(qp);
}

// The ring was read: a packet that waited for a receive WQE continues, with a receive or without.
void EngineShell::receives_settled(Qp& qp) {
  auto& ring = qp.receive_ring;
  if (!qp.looks_for_receive || ring.reading()) return;
  if (ring.held() == 0 && ring.take_look_again()) return look_for_receives(qp);
  qp.looks_for_receive = qp.asked = false;
  qp.no_receive = ring.held() == 0;
  pump_inbound(qp);
}

void EngineShell::fail(Qp& qp) {
  if (qp.state == roce::QpState::error) return;
  set_state(qp, roce::QpState::error);
  drop(qp.requests);
  qp.inbound.clear();
  qp.early.clear();
  qp.asked = qp.looks_for_receive = qp.waits = false;
  // Complete messages with payload under way go first: their receives were taken first.
  for (; !qp.cqes.empty(); qp.cqes.pop_front())
    flush_receive(receive_error(qp, qp.cqes.front(), roce::Status::flushed_error));
  core_->fail(qp.slot);
  if (qp.has_send()) fetch_sends(qp);
  if (qp.has_srq()) return flush_shared(qp);
  if (!qp.has_receive()) return;
  qp.receive_ring.begin_flush();
  flush_receives(qp);
}

void EngineShell::flush_receives(Qp& qp) {
  if (const auto read = qp.receive_ring.flush_read(qp.context)) return read_ring(qp, QueueKind::receive, *read);
  while (const auto index = qp.receive_ring.flush_next())
    flush_receive(receive_error(qp, *index, roce::Status::flushed_error));
}

void EngineShell::flush_receive(CqeWrite&& write) {
  count_receive_error(write.cqe.syndrome);
  out_.cqe(std::move(write));
}

}  // namespace rnicsim::nic
