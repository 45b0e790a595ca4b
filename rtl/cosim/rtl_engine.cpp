#include "rtl/cosim/rtl_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "model/base/kernel.h"

namespace rnicsim::rtl {
namespace {

constexpr int kPoison = 0xdd;
constexpr std::uint32_t kNoCq = 0xffffff;
constexpr std::uint32_t kFirstQpn = 64;  // that a kernel gives out

std::uint64_t ticks_of(Duration at) { return static_cast<std::uint64_t>(at.ps / kTickPs); }

}  // namespace

std::unique_ptr<nic::QpEngine> make_rtl_engine(const nic::QpLimits& limits, const RtlOptions& options) {
  return std::make_unique<RtlEngine>(limits, options);
}

void limit_to_rtl(nic::CapabilityParams& capabilities) {
  capabilities.max_qp = std::min(capabilities.max_qp, kFirstQpn + kSlots);
  capabilities.max_rd_atomic = std::min(capabilities.max_rd_atomic, kMaxRdAtomic);
  capabilities.invalidate = capabilities.windows = capabilities.uc = capabilities.ud = capabilities.srq = false;
  capabilities.max_multicast_groups = 0;
}

RtlEngine::RtlEngine(const nic::QpLimits& limits, const RtlOptions& options)
    : limits_(limits),
      options_(options),
      rtl_({.checked = options.lockstep, .waves = options.waves}),
      units_(limits.transmit_units) {
  if (options.lockstep) referee_ = std::make_unique<Lockstep>();
}

// Answers may come while a request is made: they wait until the present input is done with.
void RtlEngine::step(std::function<void()> input) {
  if (busy_) {
    inputs_.push_back(std::move(input));
    return;
  }
  busy_ = true;
  input();
  for (;;) {
    while (!inputs_.empty()) {
      const auto next = std::move(inputs_.front());
      inputs_.pop_front();
      next();
    }
    dispatch();
    if (inputs_.empty()) break;
  }
  busy_ = false;
  if (!queues_.empty()) arm_clock();
}

void RtlEngine::doorbell(nic::SendDoorbell doorbell) {
  step([this, doorbell = std::move(doorbell)] { take_doorbell(doorbell); });
}
void RtlEngine::wqe(nic::WqeBytes wqe) {
  step([this, wqe = std::move(wqe)] {
    const auto [qp, purpose, argument] = redeem(wqe.tag);
    if (qp == nullptr) return;
    purpose == Purpose::send_ring ? sends_fetched(*qp, wqe) : receives_fetched(*qp, wqe);
    schedule(*qp);
  });
}
void RtlEngine::wqe_at_hand(nic::Tag tag) {
  step([this, tag] {
    const auto [qp, purpose, message] = redeem(tag);
    if (qp == nullptr) return;
    if (message - qp->retired < qp->window.size())
      qp->window[message - qp->retired].wqe.presence = nic::SendWqe::Presence::at_hand;
    schedule(*qp);
  });
}
void RtlEngine::context(nic::ContextFill fill) {
  step([this, fill = std::move(fill)] { take_context(fill); });
}
void RtlEngine::evict(nic::Qpn qpn) {
  step([this, qpn] {
    auto* qp = find(qpn);
    if (qp == nullptr || !qp->resident || std::exchange(qp->evicted, true)) return;
    give_up(*qp);
  });
}
void RtlEngine::transmit_free(std::uint32_t unit) {
  step([this, unit] { units_.free(unit); });
}
void RtlEngine::gathered(nic::DmaDone done) {
  step([this, done = std::move(done)]() mutable {
    const auto [qp, purpose, sequence] = redeem(done.tag);
    if (qp == nullptr) return;
    purpose == Purpose::request_gather ? request_gathered(*qp, sequence, done) : answer_gathered(*qp, sequence, done);
    schedule(*qp);
  });
}
void RtlEngine::scattered(nic::DmaDone done) {
  step([this, done = std::move(done)] {
    const auto [qp, purpose, argument] = redeem(done.tag);
    if (qp == nullptr) return;
    if (purpose == Purpose::read_scatter) {
      trace_.answer_placed({qp->qpn, argument});
      const bool ok = done.result == nic::AccessResult::ok;
      const auto status = ok ? roce::Status::success : roce::Status::local_protection_error;
      feed(SendEvent{.slot = qp->slot, .kind = SendEvent::Kind::placed,
                     .message = static_cast<std::uint8_t>(argument % kMessages),
                     .status = static_cast<std::uint8_t>(status)});
      return;
    }
    const auto owed = static_cast<std::uint8_t>(argument);
    qp->placed.set(owed);
    auto result = done.result == nic::AccessResult::bus_error ? Result::operation : Result::access;
    if (done.result == nic::AccessResult::ok) {
      result = Result::ok;
      if (trace_.request_placed) tell_placed(*qp, owed);
    }
    feed(AnswerEvent{.slot = qp->slot, .kind = AnswerEvent::Kind::placed, .owed = owed, .result = result});
  });
}
void RtlEngine::checked(nic::KeyDone done) {
  step([this, done] {
    const auto [qp, purpose, argument] = redeem(done.tag);
    if (qp == nullptr) return;
    qp->access_granted = done.result == nic::AccessResult::ok;
    qp->asked = false;
    pump_inbound(*qp);
  });
}
void RtlEngine::atomic_done(nic::AtomicDone done) {
  step([this, done] {
    const auto [qp, purpose, argument] = redeem(done.tag);
    if (qp == nullptr) return;
    const auto owed = static_cast<std::uint8_t>(argument % kOwed);
    const bool ok = done.result == nic::AccessResult::ok;
    if (ok && trace_.request_placed) tell_placed(*qp, owed);
    const auto failure = done.result == nic::AccessResult::bus_error ? Result::operation : Result::access;
    feed(AnswerEvent{.slot = qp->slot, .kind = AnswerEvent::Kind::atomic, .owed = owed,
                     .saved = static_cast<std::uint8_t>(argument / kOwed), .result = ok ? Result::ok : failure,
                     .original = done.original});
  });
}
// No key is ever asked to be changed, and the timers are the RTL's own.
void RtlEngine::key_changed(nic::KeyDone) {}
// Nor is anything taken from a shared queue.
void RtlEngine::srq_taken(nic::SrqTaken) {}
void RtlEngine::timer_expired(nic::Qpn, std::uint32_t) {}
void RtlEngine::packet(nic::PacketIn packet) {
  step([this, packet = std::move(packet)]() mutable { take_packet(packet); });
}
void RtlEngine::command(nic::QpCommand command) {
  step([this, command = std::move(command)] { execute(command); });
}
void RtlEngine::cq_overrun(nic::Qpn qpn) {
  step([this, qpn] {
    auto* qp = find(qpn);
    if (qp == nullptr || qp->state == roce::QpState::reset || qp->state == roce::QpState::error) return;
    out_.event({abi::EventType::qp_fatal, qpn.value});
    fail(*qp);
  });
}
void RtlEngine::credit(std::uint32_t packets) {
  step([this, packets] { take_credit(packets); });
}

void RtlEngine::reset() {
  rtl_.reset();
  if (referee_) referee_->reset();
  queues_.clear();
  clock_.disarm();
  qps_.clear();
  slots_ = {};
  tickets_.forget_all();
  inputs_.clear();
  units_.reset();
  leaving_.clear();
  responses_.clear();
  asked_of_sends_.clear();
  asked_of_answers_.clear();
  credits_ = 0;
}

// --- The clock runs as long as there is something to do: its next edge is behind now.
void RtlEngine::arm_clock() {
  const auto period = options_.clock.ps;
  clock_.arm_by({(now().ps / period + 1) * period});
}

void RtlEngine::cycle() {
  queues_.offer(rtl_);
  const auto time = ticks_of(now());
  rtl_.set_time(static_cast<std::uint64_t>(now().ps));
  const auto& outputs = rtl_.begin_cycle(time);
  if (referee_ && !referee_->failed()) {
    if (outputs.send) referee_->send(*outputs.send, rtl_, time);
    if (outputs.answer) referee_->answer(*outputs.answer, rtl_, time);
    if (rtl_.failures() != 0) referee_->complain("an assertion of the RTL failed: it is on stderr");
    if (referee_->failed() && options_.mismatch) options_.mismatch(referee_->mismatch());
  }
  if (outputs.send || outputs.answer) {
    step([this, &outputs] {
      if (outputs.send) take(*outputs.send);
      if (outputs.answer) take(*outputs.answer);
    });
  }
  rtl_.end_cycle();
  if (rtl_.busy() || rtl_.offering() || !queues_.empty()) return arm_clock();
  const auto wake = rtl_.wake();
  if (!wake) return;
  const auto period = options_.clock.ps;
  const auto edge = (static_cast<std::int64_t>(*wake) * kTickPs + period - 1) / period * period;
  clock_.arm_by({std::max(edge, (now().ps / period + 1) * period)});
}

nic::Tag RtlEngine::issue(RtlQp& qp, Purpose purpose, std::uint64_t argument) {
  ++qp.tickets;
  return tickets_.issue(qp.qpn, qp.epoch, purpose, argument);
}

RtlEngine::Redeemed RtlEngine::redeem(nic::Tag tag) {
  const auto ticket = tickets_.redeem(tag);
  auto* qp = ticket ? find(ticket->qpn) : nullptr;
  if (qp == nullptr || qp->epoch != ticket->epoch) return {};
  --qp->tickets;
  give_up(*qp);
  return {qp, ticket->purpose, ticket->argument};
}

void RtlEngine::read_ring(RtlQp& qp, nic::QueueKind queue, const nic::RingRead& read) {
  const auto purpose = queue == nic::QueueKind::send ? Purpose::send_ring : Purpose::receive_ring;
  out_.wqe_fetch({issue(qp, purpose), qp.qpn, queue, qp.context.pasid, read.address, read.bytes});
}

// --- Packets take their turns on the transmit units.
void RtlEngine::schedule(RtlQp& qp) {
  if (!qp.request_turn && request_waits(qp)) {
    qp.request_turn = true;
    units_.enqueue({qp.qpn, qp.epoch, false});
  }
  if (!qp.answer_turn && answer_waits(qp)) {
    qp.answer_turn = true;
    units_.enqueue({qp.qpn, qp.epoch, true});
  }
}

void RtlEngine::dispatch() {
  while (credits_ > 0) {
    const auto next = units_.next();
    if (!next) return;
    if (!next->turn)
      out_.transmit_wanted(next->unit);
    else if (serve(*next->turn, next->unit))
      units_.took(next->unit);
  }
}

bool RtlEngine::serve(const nic::TransmitUnits::Turn& turn, std::uint32_t unit) {
  auto* qp = find(turn.qpn);
  if (qp == nullptr || qp->epoch != turn.epoch) return false;
  (turn.answers ? qp->answer_turn : qp->request_turn) = false;
  if (turn.answers ? !answer_waits(*qp) : !request_waits(*qp)) return false;
  --credits_;
  auto work = turn.answers ? send_answer(*qp) : send_request(*qp);
  work.unit = unit;
  schedule(*qp);
  out_.transmit(std::move(work));
  return true;
}

void RtlEngine::emit_ready(RtlQp& qp, bool is_request) {
  (is_request ? qp.requests : qp.answers).emit_ready([&](nic::PacketLane::Entry& entry) {
    leaving_.push_back({qp.qpn, qp.epoch, is_request, entry.end});
    out_.packet({qp.qpn, entry.headers, qp.context.path, std::move(entry.payload)});
  });
}

void RtlEngine::take_credit(std::uint32_t packets) {
  credits_ += packets;
  for (std::uint32_t i = 0; i < packets && !leaving_.empty(); ++i) {
    const auto packet = leaving_.front();
    leaving_.pop_front();
    auto* qp = find(packet.qpn);
    if (qp == nullptr || qp->epoch != packet.epoch) continue;
    if (packet.is_request)
      feed(SendEvent{.slot = qp->slot, .kind = SendEvent::Kind::left, .count = 1, .has_psn = true,
                     .psn = packet.end.value()});
    else
      feed(AnswerEvent{.slot = qp->slot, .kind = AnswerEvent::Kind::left, .count = 1});
  }
}

// --- Contexts.
void RtlEngine::take_context(const nic::ContextFill& fill) {
  auto* qp = find(fill.qpn);
  if (qp == nullptr) return;
  qp->evicted = false;
  if (std::exchange(qp->resident, true)) return;
  if (fill.context) {
    qp->context = *fill.context;
    return;
  }
  // Its context can't be read any more: it is lost, and where its completions go with it.
  qp->context = {};
  qp->context.send_cqn = qp->context.receive_cqn = kNoCq;
  out_.event({abi::EventType::qp_fatal, fill.qpn.value});
  fail(*qp);
}

// The context goes to ICM, and what stays here is not to be read by mistake.
void RtlEngine::give_up(RtlQp& qp) {
  if (!qp.evicted || qp.in_use()) return;
  ask(qp, [this](RtlQp& owner, const Snapshot& snapshot) {
    if (!owner.evicted || owner.in_use() || !snapshot.answer.idle) return;
    owner.evicted = false;
    out_.context_write_back({owner.qpn, context_of(owner, snapshot)});
    std::memset(static_cast<void*>(&owner.context), kPoison, sizeof owner.context);
    owner.resident = false;
  });
}

void RtlEngine::set_state(RtlQp& qp, roce::QpState state) {
  if (state == qp.state) return;
  if (trace_.state_changed) trace_.state_changed({qp.qpn, qp.state, state});
  qp.state = state;
  qp.context.state = static_cast<abi::QpState>(state);
}

std::size_t RtlEngine::sends_outstanding() const {
  std::size_t sends = 0;
  qps_.for_each([&](std::uint32_t, const RtlQp& qp) { sends += qp.window.size() + qp.parsed.size(); });
  return sends;
}

void RtlEngine::describe_state(std::string& out) const {
  constexpr const char* kNames[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  qps_.for_each([&](std::uint32_t number, const RtlQp& qp) {
    const auto remote = qp.resident ? fmt::format("{:#08x}", std::uint32_t(qp.context.remote_qpn)) : "(in ICM)";
    out += fmt::format(
        "qp {:#08x} RC {} -> {}: slot {}, {} sends in the window, {} parsed; {} packets in, {} receives held\n", number,
        kNames[static_cast<int>(qp.state)], remote, qp.slot, qp.window.size(), qp.parsed.size(), qp.inbound.size(),
        qp.receive_ring.held());
  });
}

}  // namespace rnicsim::rtl
