// Commands on queue pairs: creation, the state machine, queries.
#include <utility>

#include "model/nic/model_engine.h"

namespace rnicsim::nic {

using roce::QpState;

void ModelEngine::execute(const QpCommand& command) {
  using Kind = QpCommand::Kind;
  if (command.kind == Kind::create) {
    const auto syndrome = create(command);
    return finish(command, status_of(syndrome), syndrome, command.context);
  }
  auto* qp = find(command.qpn);
  if (qp == nullptr) return finish(command, abi::CommandStatus::bad_resource, QpSyndrome::none, {});
  if (command.kind == Kind::query) return finish(command, abi::CommandStatus::ok, QpSyndrome::none, snapshot(*qp));
  if (command.kind == Kind::modify) {
    const auto syndrome = modify(*qp, command);
    const auto context = snapshot(*find(command.qpn));  // reset makes it a new object
    if (syndrome == QpSyndrome::none) out_.context_write_back({command.qpn, context});
    return finish(command, status_of(syndrome), syndrome, context);
  }
  rebirth(*qp);
  qps_.erase(command.qpn.value);
  out_.context_write_back({command.qpn, {}});
  finish(command, abi::CommandStatus::ok, QpSyndrome::none, {});
}

void ModelEngine::finish(const QpCommand& command, abi::CommandStatus status, QpSyndrome syndrome,
                         const abi::Qpc& context) {
  out_.command_done({command.tag, static_cast<std::uint8_t>(status), static_cast<std::uint32_t>(syndrome), context});
}

QpSyndrome ModelEngine::create(const QpCommand& command) {
  const auto syndrome = check_fixed(command.context, limits_);
  if (syndrome != QpSyndrome::none) return syndrome;
  auto qp = std::make_unique<Qp>(command.qpn, transport_of(command.context), ++births_);
  qp->context = command.context;
  // A datagram is as long as the port allows.
  if (qp->transport == roce::Transport::ud) qp->context.path_mtu = limits_.max_mtu;
  qp->context.state = abi::QpState::reset;
  out_.context_write_back({command.qpn, qp->context});
  qps_.put(command.qpn.value, std::move(qp));
  return QpSyndrome::none;
}

QpSyndrome ModelEngine::modify(Qp& qp, const QpCommand& command) {
  const auto from = qp.state;
  const auto [refused, to, context] = judge_modify(command, qp.context, from, qp.draining(), limits_);
  if (refused != QpSyndrome::none) return refused;
  qp.context = context;
  enter(qp, from, to);
  return QpSyndrome::none;
}

void ModelEngine::enter(Qp& qp, QpState from, QpState to) {
  const auto responder = responder_attributes(qp.context, limits_);
  if (to == QpState::reset) return rebirth(qp);
  if (to == QpState::error) return fail(qp);
  if (to == QpState::init) return set_state(qp, to);
  if (to == QpState::rtr) {
    qp.responder.start(responder, roce::Psn(qp.context.receive_psn));
    return set_state(qp, to);
  }
  if (from == QpState::rtr) {
    qp.window.start(send_attributes(qp.qpn, qp.context), roce::Psn(qp.context.send_psn));
    qp.left_psn = qp.window.next_psn;
  }
  if (from == QpState::sqe) qp.window.restart();
  qp.window.update(send_attributes(qp.qpn, qp.context));
  qp.responder.update(responder);
  qp.requester.stop_starting(to == QpState::sqd);
  set_state(qp, to);
  if (to == QpState::sqd && from != QpState::sqd) qp.drain_announced = false;
  if (std::exchange(qp.ack_timeout, qp.context.timeout) != qp.context.timeout) keep_ack_timer(qp, true);
  // What waited in SQD may be done with now, and a READ with no resource left for it is.
  retire(qp, false);
}

// Everything on its way for this QP is void: answers to its tags find another epoch.
void ModelEngine::rebirth(Qp& qp) {
  if (qp.has_srq()) give_back_all(qp);
  credits_ += qp.requests.drop_from(0) + qp.answers.drop_from(0);
  out_.timer({qp.qpn, Timer::ack, {}, true});
  out_.timer({qp.qpn, Timer::rnr, {}, true});
  set_state(qp, QpState::reset);
  auto next = std::make_unique<Qp>(qp.qpn, qp.transport, ++births_);
  next->context = qp.context;
  next->ack_timeout = qp.ack_timeout;
  const auto number = qp.qpn.value;
  qps_.put(number, std::move(next));
}

abi::Qpc ModelEngine::snapshot(const Qp& qp) const {
  auto context = qp.context;
  context.state = static_cast<abi::QpState>(qp.state);
  context.send_consumer = qp.send_retired;
  context.send_next = qp.send_ring.parsed();
  context.receive_consumer = qp.has_receive() ? qp.receive_ring.consumer() : 0;
  context.next_send_psn = qp.window.unsent_psn.value();
  context.oldest_unacked_psn = qp.window.oldest_psn().value();
  context.expected_psn = qp.responder.expected_psn().value();
  context.msn = qp.responder.msn();
  context.retries_left = qp.window.retries_left;
  context.rnr_retries_left = qp.window.rnr_retries_left;
  context.draining = qp.draining();
  return context;
}

}  // namespace rnicsim::nic
