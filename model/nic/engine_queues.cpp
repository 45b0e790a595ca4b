// The receive ring of the model engine, and flushing both queues in the error state.
#include <algorithm>

#include "model/abi/big_endian.h"
#include "model/nic/model_engine.h"

namespace rnicsim::nic {
namespace {

constexpr std::uint32_t kFetchReceives = 16;
constexpr std::size_t kLowReceives = 8;  // fewer held: look for more

}  // namespace

void ModelEngine::take_receive(Qp& qp) {
  qp.receiving = std::move(qp.receives.front());
  qp.receives.pop_front();
}

void ModelEngine::replenish_receives(Qp& qp) {
  if (qp.receives.size() < kLowReceives) look_for_receives(qp);
}

// There is no receive doorbell: the producer stands in the doorbell record.
void ModelEngine::look_for_receives(Qp& qp) {
  if (qp.receive_fetching || !qp.has_receive()) return receives_settled(qp);
  if (qp.receive_producer != qp.receive_fetched) return fetch_receives(qp);
  qp.receive_fetching = true;
  out_.wqe_fetch({issue(qp, Purpose::receive_record), qp.qpn, QueueKind::receive, qp.context.pasid,
                  qp.context.doorbell_record, sizeof(abi::QpDoorbellRecord)});
}

void ModelEngine::receive_record(Qp& qp, const WqeBytes& record) {
  qp.receive_fetching = false;
  if (record.ok) {
    const auto producer = static_cast<std::uint16_t>(abi::load_be<std::uint32_t>(record.bytes.bytes().data()));
    const auto added = static_cast<std::uint16_t>(producer - qp.receive_fetched);
    if (added <= 1u << qp.context.log_receive_wqes) qp.receive_producer = producer;
  }
  if (qp.state == roce::QpState::error) return flush_receives(qp);
  if (qp.receive_producer != qp.receive_fetched) return fetch_receives(qp);
  receives_settled(qp);
}

void ModelEngine::fetch_receives(Qp& qp) {
  const auto ring = 1u << qp.context.log_receive_wqes;
  const auto at = qp.receive_fetched & (ring - 1);
  const std::uint32_t left = static_cast<std::uint16_t>(qp.receive_producer - qp.receive_fetched);
  const auto count = std::min({left, kFetchReceives, ring - at});
  const auto stride = 1u << qp.context.log_receive_stride;
  qp.receive_fetching = true;
  out_.wqe_fetch({issue(qp, Purpose::receive_wqes), qp.qpn, QueueKind::receive, qp.context.pasid,
                  qp.context.receive_ring + std::uint64_t{at} * stride, count * stride});
}

void ModelEngine::receives_fetched(Qp& qp, const WqeBytes& wqes) {
  qp.receive_fetching = false;
  if (qp.state == roce::QpState::error) return flush_receives(qp);
  if (!wqes.ok) {
    out_.event({abi::EventType::qp_fatal, qp.qpn.value});
    return fail(qp);
  }
  const auto bytes = wqes.bytes.bytes();
  const std::size_t stride = std::size_t{1} << qp.context.log_receive_stride;
  for (std::size_t at = 0; at < bytes.size(); at += stride) {
    const auto& wqe = qp.receives.push_back(parse_receive_wqe(bytes.subspan(at, stride), qp.receive_fetched++));
    trace_.wqe_taken({qp.qpn, QueueKind::receive, wqe.index, abi::SendOpcode::nop, wqe.bytes, false});
  }
  receives_settled(qp);
}

// The ring was looked at: a packet that waited for a receive WQE goes on, with one or without.
void ModelEngine::receives_settled(Qp& qp) {
  if (!qp.inbound_waits || qp.receive_fetching) return;
  if (qp.offer.receive != roce::Offer::Receive::unknown || qp.inbound.empty()) return;
  if (qp.receives.empty() && std::exchange(qp.look_again, false)) return look_for_receives(qp);
  if (qp.receives.empty()) qp.offer.receive = roce::Offer::Receive::none;
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
  if (!qp.has_receive()) return;
  qp.receive_flushing = true;
  flush_receives(qp);
}

void ModelEngine::flush_sends(Qp& qp) {
  while (const auto completion = qp.completer.take_flushed()) {
    auto flushed = *completion;
    flushed.status = roce::Status::flushed_error;
    complete_send(qp, flushed, false);
  }
}

// In order: the receive that was being filled, those held, then those in the ring. The producer is read once more
// first, so that all that was posted before the error is there.
void ModelEngine::flush_receives(Qp& qp) {
  if (qp.receive_fetching) return;  // whose answer comes back here
  if (std::exchange(qp.receive_flushing, false)) {
    qp.receive_fetching = true;
    out_.wqe_fetch({issue(qp, Purpose::receive_record), qp.qpn, QueueKind::receive, qp.context.pasid,
                    qp.context.doorbell_record, sizeof(abi::QpDoorbellRecord)});
    return;
  }
  if (qp.receiving) flush_receive(qp, qp.receiving->index);
  qp.receiving.reset();
  for (std::size_t i = 0; i < qp.receives.size(); ++i) flush_receive(qp, qp.receives[i].index);
  qp.receives.clear();
  while (qp.receive_fetched != qp.receive_producer) flush_receive(qp, qp.receive_fetched++);
}

void ModelEngine::flush_receive(Qp& qp, std::uint16_t index) {
  ++counters_.resp_cqe_error;
  out_.cqe(receive_error(qp, index, roce::Status::flushed_error));
}

}  // namespace rnicsim::nic
