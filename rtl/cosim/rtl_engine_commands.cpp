// Commands on queue pairs: creation, the state machine, queries. What the RTL keeps of a context is asked of it.
#include <utility>

#include "rtl/cosim/rtl_engine.h"

namespace rnicsim::rtl {
namespace {

using nic::QpSyndrome;
using roce::QpState;

SendControl send_control(const RtlQp& qp, Control kind, bool draining) {
  const auto& context = qp.context;
  return {.slot = qp.slot, .kind = kind, .psn = context.send_psn, .mtu = context.path_mtu,
          .remote_qpn = context.remote_qpn, .max_rd_atomic = context.max_rd_atomic, .retry_count = context.retry_count,
          .rnr_retry = context.rnr_retry, .timeout = context.timeout, .draining = draining};
}

AnswerControl answer_control(const RtlQp& qp, Control kind, const nic::QpLimits& limits) {
  const auto& context = qp.context;
  const auto granted = [&](std::uint32_t access) { return (context.access_flags & access) != 0; };
  return {.slot = qp.slot, .kind = kind, .psn = context.receive_psn, .mtu = context.path_mtu,
          .remote_qpn = context.remote_qpn, .allow_write = granted(roce::remote_access::kWrite),
          .allow_read = granted(roce::remote_access::kRead), .allow_atomic = granted(roce::remote_access::kAtomic),
          .max_dest_rd_atomic = context.max_dest_rd_atomic, .min_rnr_timer = context.min_rnr_timer,
          .max_message = nic::max_message(context, limits)};
}

}  // namespace

void RtlEngine::execute(const nic::QpCommand& command) {
  using Kind = nic::QpCommand::Kind;
  if (command.kind == Kind::create) {
    const auto syndrome = create(command);
    auto status = nic::status_of(syndrome);
    if (syndrome == QpSyndrome::none && find(command.qpn) == nullptr) status = abi::CommandStatus::exceeds_limit;
    return finish(command, status, syndrome, command.context);
  }
  auto* qp = find(command.qpn);
  if (qp == nullptr) return finish(command, abi::CommandStatus::bad_resource, QpSyndrome::none, {});
  if (command.kind == Kind::query)
    return ask(*qp, [this, command](RtlQp& owner, const Snapshot& snapshot) {
      finish(command, abi::CommandStatus::ok, QpSyndrome::none, context_of(owner, snapshot));
    });
  if (command.kind == Kind::modify) {
    if (qp->state != QpState::sqd) return modify(*qp, command, false);
    return ask(*qp, [this, command](RtlQp& owner, const Snapshot& snapshot) {
      modify(owner, command, owner.state == QpState::sqd && !snapshot.send.drained);
    });
  }
  rebirth(*qp);
  slots_[find(command.qpn)->slot].qpn.reset();
  qps_.erase(command.qpn.value);
  out_.context_write_back({command.qpn, {}});
  finish(command, abi::CommandStatus::ok, QpSyndrome::none, {});
}

void RtlEngine::finish(const nic::QpCommand& command, abi::CommandStatus status, QpSyndrome syndrome,
                       const abi::Qpc& context) {
  out_.command_done({command.tag, static_cast<std::uint8_t>(status), static_cast<std::uint32_t>(syndrome), context});
}

// No place in the RTL: no queue pair.
QpSyndrome RtlEngine::create(const nic::QpCommand& command) {
  const auto syndrome = nic::check_fixed(command.context, limits_);
  if (syndrome != QpSyndrome::none) return syndrome;
  std::size_t slot = 0;
  while (slot < slots_.size() && slots_[slot].taken()) ++slot;
  if (slot == slots_.size()) return syndrome;
  auto qp = std::make_unique<RtlQp>(command.qpn, ++births_, static_cast<std::uint8_t>(slot));
  qp->context = command.context;
  qp->context.state = abi::QpState::reset;
  slots_[slot].qpn = command.qpn;
  out_.context_write_back({command.qpn, qp->context});
  rebirth(qps_.put(command.qpn.value, std::move(qp)));
  return syndrome;
}

void RtlEngine::modify(RtlQp& qp, const nic::QpCommand& command, bool draining) {
  const auto from = qp.state;
  const auto [refused, to, context] = nic::judge_modify(command, qp.context, from, draining, limits_);
  if (refused == QpSyndrome::none) {
    qp.context = context;
    enter(qp, from, to);
  }
  // Reset makes it a new object.
  ask(*find(command.qpn), [this, command, refused = refused](RtlQp& owner, const Snapshot& snapshot) {
    const auto now = context_of(owner, snapshot);
    if (refused == QpSyndrome::none) out_.context_write_back({command.qpn, now});
    finish(command, nic::status_of(refused), refused, now);
  });
}

void RtlEngine::enter(RtlQp& qp, QpState from, QpState to) {
  if (to == QpState::reset) return rebirth(qp);
  if (to == QpState::error) return fail(qp);
  if (to == QpState::init) return set_state(qp, to);
  if (to == QpState::rtr) {
    feed(answer_control(qp, Control::start, limits_));
    return set_state(qp, to);
  }
  feed(send_control(qp, from == QpState::rtr ? Control::start : Control::update, to == QpState::sqd));
  feed(answer_control(qp, Control::update, limits_));
  set_state(qp, to);
  fetch_sends(qp);
}

// Everything on its way for this QP is void: answers to its tags find another epoch.
void RtlEngine::rebirth(RtlQp& qp) {
  credits_ += qp.requests.drop_from(0) + qp.answers.drop_from(0);
  set_state(qp, QpState::reset);
  auto next = std::make_unique<RtlQp>(qp.qpn, ++births_, qp.slot);
  next->context = qp.context;
  auto& slot = slots_[qp.slot];
  ++slot.send_void;
  ++slot.answer_void;
  feed(SendControl{.slot = qp.slot, .kind = Control::reset});
  feed(AnswerControl{.slot = qp.slot, .kind = Control::reset});
  const auto number = qp.qpn.value;
  qps_.put(number, std::move(next));
}

void RtlEngine::ask(RtlQp& qp, std::function<void(RtlQp&, const Snapshot&)> then) {
  const auto snapshot = std::make_shared<Snapshot>();
  snapshot->qpn = qp.qpn;
  snapshot->epoch = qp.epoch;
  snapshot->then = std::move(then);
  ++qp.tickets;
  asked_of_sends_.push_back(std::shared_ptr(snapshot));
  asked_of_answers_.push_back(std::shared_ptr(snapshot));
  feed(SendControl{.slot = qp.slot, .kind = Control::query});
  feed(AnswerControl{.slot = qp.slot, .kind = Control::query});
}

template <class Record>
void RtlEngine::told(Fifo<std::shared_ptr<Snapshot>>& asked, Record Snapshot::*part, const Record& record) {
  const auto snapshot = std::move(asked.front());
  asked.pop_front();
  (*snapshot).*part = record;
  if (++snapshot->parts < 2) return;
  auto* qp = find(snapshot->qpn);
  if (qp == nullptr || qp->epoch != snapshot->epoch) return;
  --qp->tickets;
  snapshot->then(*qp, *snapshot);
}
template void RtlEngine::told(Fifo<std::shared_ptr<Snapshot>>&, SendRecord Snapshot::*, const SendRecord&);
template void RtlEngine::told(Fifo<std::shared_ptr<Snapshot>>&, AnswerRecord Snapshot::*, const AnswerRecord&);

abi::Qpc RtlEngine::context_of(const RtlQp& qp, const Snapshot& snapshot) const {
  auto context = qp.context;
  context.state = static_cast<abi::QpState>(qp.state);
  context.send_consumer = qp.send_retired;
  context.send_next = qp.send_ring.parsed();
  context.receive_consumer = qp.receive_ring.consumer();
  context.next_send_psn = snapshot.send.end_psn;
  context.oldest_unacked_psn = snapshot.send.psn;
  context.expected_psn = snapshot.answer.psn;
  context.msn = snapshot.answer.msn;
  context.retries_left = snapshot.send.retries;
  context.rnr_retries_left = snapshot.send.rnr_retries;
  context.draining = qp.state == QpState::sqd && !snapshot.send.drained;
  return context;
}

}  // namespace rnicsim::rtl
