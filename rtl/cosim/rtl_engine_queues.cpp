// The receive ring of a queue pair, and flushing both queues in the error state.
#include "model/nic/engine_cqes.h"
#include "rtl/cosim/rtl_engine.h"

namespace rnicsim::rtl {

void RtlEngine::look_for_receives(RtlQp& qp) {
  const auto read = qp.has_receive() ? qp.receive_ring.begin_read(qp.context) : std::nullopt;
  read ? read_ring(qp, nic::QueueKind::receive, *read) : receives_settled(qp);
}

void RtlEngine::receives_fetched(RtlQp& qp, const nic::WqeBytes& wqes) {
  auto& ring = qp.receive_ring;
  const auto before = ring.held();
  const auto found = ring.end_read(wqes, qp.context);
  if (qp.state == roce::QpState::error) return flush_receives(qp);
  if (found == nic::ReceiveRing::Found::posted) return look_for_receives(qp);
  if (found == nic::ReceiveRing::Found::no_ring) {
    out_.event({abi::EventType::qp_fatal, qp.qpn.value});
    return fail(qp);
  }
  for (auto i = before; i < ring.held(); ++i)
    trace_.wqe_taken({qp.qpn, nic::QueueKind::receive, ring[i].index, abi::SendOpcode::nop, ring[i].bytes, false});
  receives_settled(qp);
}

// The ring was looked at: a packet that waited for a receive WQE goes on, with one or without.
void RtlEngine::receives_settled(RtlQp& qp) {
  auto& ring = qp.receive_ring;
  if (!qp.looks_for_receive || ring.reading()) return;
  if (ring.held() == 0 && ring.take_look_again()) return look_for_receives(qp);
  qp.looks_for_receive = qp.asked = false;
  qp.no_receive = ring.held() == 0;
  pump_inbound(qp);
}

void RtlEngine::fail(RtlQp& qp) {
  if (qp.state == roce::QpState::error) return;
  set_state(qp, roce::QpState::error);
  feed(SendControl{.slot = qp.slot, .kind = Control::error});
  feed(AnswerControl{.slot = qp.slot, .kind = Control::error});
  ++slots_[qp.slot].answer_void;
  credits_ += qp.requests.drop_from(0);
  qp.request_packets.clear();
  qp.answer_packets.clear();
  qp.inbound.clear();
  qp.asked = qp.looks_for_receive = qp.waits = false;
  // Messages that are whole but not settled go first: their receives were taken first.
  for (; !qp.cqes.empty(); qp.cqes.pop_front()) flush_receive(qp, qp.cqes.front().receive_index);
  if (qp.has_send()) fetch_sends(qp);
  if (!qp.has_receive()) return;
  qp.receive_ring.begin_flush();
  flush_receives(qp);
}

void RtlEngine::flush_receives(RtlQp& qp) {
  if (const auto read = qp.receive_ring.flush_read(qp.context)) return read_ring(qp, nic::QueueKind::receive, *read);
  while (const auto index = qp.receive_ring.flush_next()) flush_receive(qp, *index);
}

void RtlEngine::flush_receive(RtlQp& qp, std::uint16_t index) {
  ++counters_.resp_cqe_error;
  out_.cqe(nic::receive_error_cqe(qp.qpn, {qp.context.receive_cqn}, index, roce::Status::flushed_error));
}

}  // namespace rnicsim::rtl
