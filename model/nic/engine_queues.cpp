// The receive ring of the model engine, and flushing both queues in the error state.
#include "model/nic/model_engine.h"

namespace rnicsim::nic {

void ModelEngine::look_for_receives(Qp& qp) {
  if (qp.has_srq()) return ask_for_shared(qp);
  const auto read = qp.has_receive() ? qp.receive_ring.begin_read(qp.context) : std::nullopt;
  read ? read_ring(qp, QueueKind::receive, *read) : receives_settled(qp);
}

void ModelEngine::receives_fetched(Qp& qp, const WqeBytes& wqes) {
  auto& ring = qp.receive_ring;
  const auto before = ring.held();
  const auto found = ring.end_read(wqes, qp.context);
  if (qp.state == roce::QpState::error) return flush_receives(qp);
  if (found == ReceiveRing::Found::posted) return look_for_receives(qp);
  if (found == ReceiveRing::Found::no_ring) {
    out_.event({abi::EventType::qp_fatal, qp.qpn.value});
    return fail(qp);
  }
  for (auto i = before; i < ring.held(); ++i)
    trace_.wqe_taken({qp.qpn, QueueKind::receive, ring[i].index, abi::SendOpcode::nop, ring[i].bytes, false});
  receives_settled(qp);
}

// The ring was looked at: a packet that waited for a receive WQE goes on, with one or without.
void ModelEngine::receives_settled(Qp& qp) {
  auto& ring = qp.receive_ring;
  if (!qp.inbound_waits || ring.reading()) return;
  if (qp.offer.receive != roce::Offer::Receive::unknown || qp.inbound.empty()) return;
  if (ring.held() == 0 && ring.take_look_again()) return look_for_receives(qp);
  if (ring.held() == 0) qp.offer.receive = roce::Offer::Receive::none;
  qp.inbound_waits = false;
  pump_inbound(qp);
}

void ModelEngine::fail(Qp& qp) {
  if (qp.state == roce::QpState::error) return;
  set_state(qp, roce::QpState::error);
  drop_requests(qp);
  keep_ack_timer(qp, false);
  out_.timer({qp.qpn, Timer::rnr, {}, true});
  qp.inbound.clear();
  qp.inbound_waits = false;
  // Messages that are whole but not settled go first: their receives were taken first.
  for (; !qp.responses.empty(); qp.responses.pop_front())
    if (qp.responses.front().cqe) flush_receive(qp, qp.responses.front().receive_index);
  flush_sends(qp);
  if (qp.has_send()) fetch_sends(qp);
  if (qp.has_srq()) return flush_shared(qp);
  if (!qp.has_receive()) return;
  qp.receive_ring.begin_flush();
  flush_receives(qp);
}

void ModelEngine::flush_sends(Qp& qp) {
  while (const auto completion = qp.completer.take_flushed()) {
    auto flushed = *completion;
    flushed.status = roce::Status::flushed_error;
    complete_send(qp, flushed, false);
  }
}

void ModelEngine::flush_receives(Qp& qp) {
  if (const auto read = qp.receive_ring.flush_read(qp.context)) return read_ring(qp, QueueKind::receive, *read);
  while (const auto index = qp.receive_ring.flush_next()) flush_receive(qp, *index);
}

void ModelEngine::flush_receive(Qp& qp, std::uint16_t index) {
  ++counters_.resp_cqe_error;
  out_.cqe(receive_error(qp, index, roce::Status::flushed_error));
}

}  // namespace rnicsim::nic
