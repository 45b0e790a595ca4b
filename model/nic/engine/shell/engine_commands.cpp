// SPDX-License-Identifier: Apache-2.0
// Commands on queue pairs: creation, state machine, queries. The core is queried for its part of a context.
#include <utility>

#include "model/nic/engine/shell/engine_shell.h"

namespace rnicsim::nic {

using roce::QpState;
using Ask = Qp::Question::Kind;

void EngineShell::execute(const QpCommand& command) {
  using Kind = QpCommand::Kind;
  if (command.kind == Kind::create) return create(command);
  auto* qp = find(command.qpn);
  if (qp == nullptr) return finish(command, CommandStatus::bad_resource, QpSyndrome::none, {});
  if (command.kind == Kind::query) return ask(*qp, {Ask::query, command});
  if (command.kind == Kind::modify) {
    // The core knows whether the queue is still draining.
    if (qp->state == QpState::sqd) return ask(*qp, {Ask::modify, command});
    return modify(*qp, command, false);
  }
  const auto slot = restart_qp(*qp).slot;
  core_->close(slot);
  slots_[slot] = nullptr;
  qps_.erase(command.qpn.value);
  out_.context_write_back({command.qpn, {}});
  finish(command, CommandStatus::ok, QpSyndrome::none, {});
}

void EngineShell::finish(const QpCommand& command, CommandStatus status, QpSyndrome syndrome,
                         const QpContext& context) {
  out_.command_done({command.tag, status, static_cast<std::uint32_t>(syndrome), context});
}

void EngineShell::create(const QpCommand& command) {
  const auto syndrome = check_fixed(command.context, limits_);
  if (syndrome != QpSyndrome::none) return finish(command, status_of(syndrome), syndrome, command.context);
  const auto transport = command.context.transport;
  const auto slot = core_->open(transport);
  if (!slot) return finish(command, CommandStatus::exceeds_limit, syndrome, command.context);
  auto& qp = qps_.put(command.qpn.value, std::make_unique<Qp>(command.qpn, transport, ++births_, *slot, limits_));
  if (*slot >= slots_.size()) slots_.resize(*slot + 1);
  slots_[*slot] = &qp;
  if (!control_rests_) qp.congestion = make_gate();
  set_context(qp, command.context);
  // The largest datagram is that of the port's MTU.
  if (transport == roce::Transport::ud) qp.context.path_mtu = limits_.max_mtu;
  qp.context.state = QpState::reset;
  out_.context_write_back({command.qpn, qp.context});
  finish(command, status_of(syndrome), syndrome, command.context);
}

void EngineShell::modify(Qp& qp, const QpCommand& command, bool draining) {
  const auto from = qp.state;
  const auto [refused, to, context] = validate_modify(command, qp.context, from, draining, limits_);
  if (refused == QpSyndrome::none) {
    set_context(qp, context);
    if (command.attributes & roce::attr::kRateLimit) qp.pacer.reset();
    const bool moves = from != to || (command.attributes & ~(roce::attr::kState | roce::attr::kStripVlan)) != 0;
    if (moves) enter(qp, from, to);
  }
  ask(*find(command.qpn), {Ask::modified, command, refused});  // a transition to reset replaces the Qp object
}

void EngineShell::enter(Qp& qp, QpState from, QpState to) {
  if (to == QpState::reset) return void(restart_qp(qp));
  if (to == QpState::error) return fail(qp);
  set_state(qp, to);
  if (to == QpState::init) return;
  const auto answers = responder_attributes(qp.context, limits_);
  if (to == QpState::rtr) return core_->start_answers(qp.slot, answers, roce::Psn(qp.context.receive_psn));
  core_->update_answers(qp.slot, answers);
  const auto sends = send_attributes(qp.qpn, qp.context, limits_);
  if (from == QpState::rtr)
    core_->start_sends(qp.slot, sends, roce::Psn(qp.context.send_psn));
  else
    core_->update_sends(qp.slot, sends, to == QpState::sqd);
}

// Resets the QP: everything under way is void, because answers to its tags find another epoch.
Qp& EngineShell::restart_qp(Qp& qp) {
  if (qp.has_srq()) give_back_all(qp);
  drop(qp.requests);
  drop(qp.answers);
  core_->reset(qp.slot);
  set_state(qp, QpState::reset);
  auto next = std::make_unique<Qp>(qp.qpn, qp.transport, ++births_, qp.slot, limits_);
  set_context(*next, qp.context);
  const auto number = qp.qpn.value;
  auto& restarted = qps_.put(number, std::move(next));
  slots_[restarted.slot] = &restarted;
  if (!control_rests_) restarted.congestion = make_gate();
  return restarted;
}

void EngineShell::ask(Qp& qp, Qp::Question question) {
  ++qp.tickets;
  qp.questions.push_back(std::move(question));
  core_->query(qp.slot);
}

void EngineShell::told(roce::Slot slot, const roce::CoreState& state) {
  auto& qp = of(slot);
  --qp.tickets;
  const auto question = std::move(qp.questions.front());
  qp.questions.pop_front();
  const auto& command = question.command;
  if (question.kind == Ask::eviction) return give_up(qp, state);
  if (question.kind == Ask::modify) return modify(qp, command, qp.state == QpState::sqd && !state.drained);
  const auto context = context_of(qp, state);
  if (question.kind == Ask::modified && question.refused == QpSyndrome::none)
    out_.context_write_back({command.qpn, context});
  finish(command, status_of(question.refused), question.refused, context);
}

QpContext EngineShell::context_of(const Qp& qp, const roce::CoreState& state) const {
  auto context = qp.context;
  context.state = qp.state;
  context.send_consumer = qp.send_retired;
  context.send_next = qp.send_ring.parsed();
  context.receive_consumer = qp.has_receive() ? qp.receive_ring.consumer() : 0;
  context.next_send_psn = state.unsent.value();
  context.oldest_unacked_psn = state.oldest_unanswered.value();
  context.expected_psn = state.expected.value();
  context.msn = state.msn;
  context.retries_left = state.retries_left;
  context.rnr_retries_left = state.rnr_retries_left;
  context.draining = qp.state == QpState::sqd && !state.drained;
  return context;
}

}  // namespace rnicsim::nic
