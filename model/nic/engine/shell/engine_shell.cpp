// SPDX-License-Identifier: Apache-2.0
#include "model/nic/engine/shell/engine_shell.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "model/base/draw.h"
#include "model/base/kernel.h"
#include "model/base/policy.h"
#include "model/roce/timers.h"

namespace rnicsim::nic {
namespace {

constexpr int kPoison = 0xdd;
constexpr std::uint32_t kNoCq = 0xffffff;
constexpr std::size_t kSmallInput = 32;
constexpr int kQpnBits = 24;
constexpr std::uint8_t kMostEarly = 8;  // timeouts in a row, each four times as long as the one before
// A timer of the shell, besides those of the core.
constexpr auto kHeldBackTimer = static_cast<std::uint32_t>(roce::Timer::rnr) + 1;

bool is_marked(const PacketIn& packet) { return (packet.packet->addresses.traffic_class & kEcnMask) == kCe; }
void make_capable(roce::FrameAddresses& addresses) {
  addresses.traffic_class = static_cast<std::uint8_t>((addresses.traffic_class & ~kEcnMask) | kEct0);
}

}  // namespace

EngineShell::EngineShell(const QpLimits& limits, std::unique_ptr<roce::QpCore> core)
    : limits_(limits),
      core_(std::move(core)),
      ecn_forced_(limits.congestion.ecn_forced()),
      echoes_marks_(echoes_marks()),
      control_rests_(make_gate().at_rest()),
      adaptive_(limits.transport.rto_high == Duration{} ? limits.adaptive_retransmission
                                                        : AdaptiveRetransmissionParams{}),
      has_early_timeouts_(limits.adaptive_timeout != Duration{} || limits.transport.rto_high != Duration{} ||
                          adaptive_),
      keeps_early_(limits.transport.reorder_window != 0),
      begins_again_(limits.transport.loss_recovery().mode == roce::Recovery::go_back_0),
      acks_reads_(limits.transport.read_acks),
      units_(limits.transmit_units),
      room_(limits.queue_bytes) {
  core_->bind(*this);
}

void EngineShell::end_step() { finish_step(); }

// Answers may come during the call that causes them: they wait until the present input is finished.
template <auto take, class Input>
void EngineShell::step(Input& input) {
  if (busy_) return defer<take>(input);
  busy_ = true;
  (this->*take)(input);
  finish_step();
}

// Packets and commands are large, and are rarely deferred.
template <auto take, class Input>
void EngineShell::defer(Input& input) {
  if constexpr (sizeof(Input) > kSmallInput)
    inputs_.push_back([this, input = std::make_unique<Input>(std::move(input))] { (this->*take)(*input); });
  else
    inputs_.push_back([this, input = std::move(input)]() mutable { (this->*take)(input); });
}

inline void EngineShell::finish_step() {
  if (!inputs_.empty() || units_.waits(room_.open()) || !to_give_up_.empty()) follow_up();
  busy_ = false;
}

void EngineShell::follow_up() {
  do {
    while (!inputs_.empty()) {
      auto next = std::move(inputs_.front());
      inputs_.pop_front();
      next();
    }
    dispatch();
  } while (units_.settle() || !inputs_.empty());
  if (!to_give_up_.empty()) give_up_contexts();
}

void EngineShell::doorbell(SendDoorbell&& doorbell) { step<&EngineShell::take_doorbell>(doorbell); }
void EngineShell::wqe(WqeBytes&& wqe) { step<&EngineShell::take_wqe>(wqe); }
void EngineShell::wqe_at_hand(Tag tag) { step<&EngineShell::take_wqe_at_hand>(tag); }
void EngineShell::receives_displaced(Qpn qpn) { step<&EngineShell::take_displacement>(qpn); }
void EngineShell::context(ContextFill fill) { step<&EngineShell::take_context>(fill); }
void EngineShell::evict(Qpn qpn) { step<&EngineShell::take_eviction>(qpn); }
// The answer usually comes during the request.
void EngineShell::transmit_free(std::uint32_t unit) {
  busy_ ? units_.free_next(unit) : step<&EngineShell::take_unit>(unit);
}
void EngineShell::gathered(DmaDone&& done) { step<&EngineShell::take_gathered>(done); }
void EngineShell::scattered(DmaDone&& done) { step<&EngineShell::take_scattered>(done); }
// If the answer comes during the request, granted() uses it.
void EngineShell::checked(KeyDone done) {
  if (done.tag != checking_ || done.result == AccessResult::absent) return step<&EngineShell::take_checked>(done);
  redeem(std::exchange(checking_, 0));
  granted_ = done.result == AccessResult::ok;
}
void EngineShell::atomic_done(AtomicDone done) { step<&EngineShell::take_atomic>(done); }
void EngineShell::key_changed(KeyDone done) { step<&EngineShell::take_key_changed>(done); }
void EngineShell::srq_taken(SrqTaken taken) { step<&EngineShell::take_shared>(taken); }
void EngineShell::packet(PacketIn&& packet) { step<&EngineShell::take_packet>(packet); }
void EngineShell::command(QpCommand command) { step<&EngineShell::take_command>(command); }
void EngineShell::timer_expired(Qpn qpn, std::uint32_t kind) {
  if (kind == kHeldBackTimer) return step<&EngineShell::take_held_back>(qpn);
  Expired timer{qpn, static_cast<roce::Timer>(kind)};
  step<&EngineShell::take_timer>(timer);
}
void EngineShell::cq_overrun(Qpn qpn) { step<&EngineShell::take_overrun>(qpn); }
void EngineShell::credit(std::uint8_t credit_class, std::uint32_t packets) {
  const Credit credit{credit_class, packets};
  step<&EngineShell::take_credit>(credit);
}

void EngineShell::take_wqe(const WqeBytes& wqe) {
  const auto [qp, purpose, argument] = redeem(wqe.tag);
  if (qp == nullptr) return;
  purpose == Purpose::send_ring ? sends_fetched(*qp, wqe) : receives_fetched(*qp, wqe);
  schedule(*qp);
}

void EngineShell::take_wqe_at_hand(const Tag& tag) {
  const auto [qp, purpose, message] = redeem(tag);
  if (qp == nullptr) return;
  if (auto* wqe = qp->wqe_of(message)) wqe->presence = SendWqe::Presence::at_hand;
  schedule_requests(*qp);
}

void EngineShell::take_displacement(const Qpn& qpn) {
  auto* qp = find(qpn);
  const bool idle = qp != nullptr && qp->responds() && !qp->has_request() && !qp->looks_for_receive && !qp->has_srq();
  if (idle) qp->receive_ring.put_back();
}

void EngineShell::take_unit(const std::uint32_t& number) { units_.free(number); }

void EngineShell::take_gathered(DmaDone& done) {
  const auto [qp, purpose, sequence] = redeem(done.tag);
  if (purpose == Purpose::request_gather) payload_read();
  if (qp == nullptr) return;
  if (purpose == Purpose::request_gather) {
    request_gathered(*qp, sequence, done);
    schedule_requests(*qp);
  } else {
    answer_gathered(*qp, sequence, done);
    schedule_answers(*qp);
  }
}

void EngineShell::take_scattered(const DmaDone& done) {
  const auto [qp, purpose, argument] = redeem(done.tag);
  if (qp == nullptr) return;
  if (purpose == Purpose::read_scatter) {
    if (trace_.answer_placed) trace_.answer_placed({qp->qpn, argument});
    core_->response_placed(qp->slot, argument, local_status(done.result));
    schedule_requests(*qp);
  } else {
    if (purpose == Purpose::early_scatter)
      early_payload_placed(*qp, roce::Psn(static_cast<std::uint32_t>(argument)), done.result);
    else
      payload_placed(*qp, argument, done.result);
    pump_inbound(*qp);
    schedule_answers(*qp);
  }
}

void EngineShell::take_checked(const KeyDone& done) {
  const auto [qp, purpose, argument] = redeem(done.tag);
  if (qp == nullptr) return;
  if (purpose != Purpose::access_check) return take_presence(*qp, purpose, argument, done.result);
  qp->absent = done.result == AccessResult::absent;
  qp->access_granted = done.result == AccessResult::ok || qp->absent;
  qp->asked = false;
  pump_inbound(*qp);
  schedule_answers(*qp);
}

void EngineShell::take_presence(Qp& qp, Purpose purpose, std::uint64_t message, AccessResult result) {
  if (purpose == Purpose::destination_presence) {
    if (auto* wqe = qp.wqe_of(message)) wqe->destination = SendWqe::Presence::at_hand;
    return schedule_requests(qp);
  }
  qp.receive_memory = result == AccessResult::absent ? Qp::ReceiveMemory::absent : Qp::ReceiveMemory::present;
  qp.asked = false;
  pump_inbound(qp);
  schedule_answers(qp);
}

void EngineShell::take_atomic(const AtomicDone& done) {
  const auto [qp, purpose, argument] = redeem(done.tag);
  if (qp == nullptr) return;
  const auto at = AnswerAt::of(argument);
  if (done.result == AccessResult::ok) tell_placed(*qp, at);
  core_->atomic_executed(qp->slot, at.pending_answer, memory_result(done.result), done.original);
  qp->waits = false;
  pump_inbound(*qp);
  schedule_answers(*qp);
}

void EngineShell::take_key_changed(const KeyDone& done) {
  const auto [qp, purpose, argument] = redeem(done.tag);
  if (qp == nullptr) return;
  if (purpose == Purpose::remote_invalidate) {
    key_invalidated(*qp, argument, done.result);
  } else {
    const bool ok = done.result == AccessResult::ok;
    core_->local_work_done(qp->slot, argument, ok ? roce::Status::success : roce::Status::memory_window_bind_error);
  }
  schedule(*qp);
}

void EngineShell::take_packet(PacketIn& packet) {
  auto* qp = find(packet.destination);
  if (qp == nullptr) return void(++counters_.unknown_qp);
  const auto& row = roce::info(packet.headers().bth.opcode);
  if (row.operation == roce::Operation::notify) return take_notification(*qp, packet);
  const bool welcome = row.transport == qp->transport && (row.response() ? qp->sends() : qp->responds());
  if (!welcome) return void(++counters_.wrong_state);
  if (!came_by_path(packet, qp->context)) return void(++counters_.wrong_path);
  if (is_marked(packet)) {
    tell_congestion(*qp, packet, CongestionSeen::Cause::marked);
    if (echoes_marks_) (row.response() ? read_acks(*qp).mark_to_echo : qp->mark_to_echo) = true;
  }
  if (const auto* telemetry = packet.packet->telemetry()) keep_telemetry(*qp, packet, *telemetry);
  if (row.response()) {
    take_response(*qp, packet);
    schedule_requests(*qp);
  } else {
    take_request(*qp, packet);
    schedule_answers(*qp);
  }
}

void EngineShell::take_command(const QpCommand& command) {
  execute(command);
  if (auto* qp = find(command.qpn)) schedule(*qp);
}

void EngineShell::take_timer(const Expired& expired) {
  auto* qp = find(expired.qpn);
  if (qp == nullptr || !qp->sends()) return;
  const bool early = expired.timer == roce::Timer::ack && qp->early_timer && early_expired(*qp);
  core_->expired(qp->slot, expired.timer, early);
  schedule_requests(*qp);
}

void EngineShell::take_held_back(const Qpn& qpn) {
  auto* qp = find(qpn);
  if (qp == nullptr || !std::exchange(qp->held_back, false)) return;
  schedule(*qp);
  if (qp->evicted) to_give_up_.push_back(qpn);
}

void EngineShell::take_overrun(const Qpn& qpn) {
  auto* qp = find(qpn);
  if (qp == nullptr || qp->state == roce::QpState::reset || qp->state == roce::QpState::error) return;
  out_.event({EventType::qp_fatal, qpn.value});
  fail(*qp);
}

void EngineShell::take_credit(const Credit& credit) {
  room_.grant(credit.credit_class, credit.packets);
  for (std::uint32_t i = 0; i < credit.packets && !leaving_[credit.credit_class].empty(); ++i)
    packet_left(credit.credit_class);
}

void EngineShell::gid_tagged(std::uint16_t index, bool tagged) {
  if (index >= tagged_gids_.size()) tagged_gids_.resize(index + 1u);
  if (tagged_gids_[index] == tagged) return;
  tagged_gids_[index] = tagged;
  qps_.for_each([this](std::uint32_t, Qp& qp) {
    if (qp.resident) qp.credit_class = class_of(qp.context.path);
  });
}

void EngineShell::packet_left(std::uint8_t credit_class) {
  const auto packet = leaving_[credit_class].front();
  leaving_[credit_class].pop_front();
  room_.give_back_bytes(credit_class, packet.bytes);
  auto* qp = find(packet.qpn);
  if (qp == nullptr || qp->epoch != packet.epoch) return;
  if (!qp->reliable()) {
    --qp->leaving;
    if (qp->evicted) to_give_up_.push_back(packet.qpn);
  }
  if (qp->congestion) control_left(*qp, packet);
  core_->left(qp->slot, packet.is_request, packet.end);
  if (!qp->reliable()) schedule_requests(*qp);
}

void EngineShell::moved(roce::Slot slot, bool answers) {
  auto& qp = of(slot);
  if (answers) qp.waits = false;
  pump_inbound(qp);
  schedule(qp);
  if (qp.evicted) to_give_up_.push_back(qp.qpn);
}

// A timeout before the queue pair's own; 0: none. IRN has one for few packets in flight and one for many; with
// ConnectX's adaptive retransmission each timeout is longer.
Duration EngineShell::early_timeout(Qp& qp, bool few) const {
  const auto& transport = limits_.transport;
  if (transport.rto_high != Duration{}) return few ? transport.rto_low : transport.rto_high;
  if (!adaptive_) return limits_.adaptive_timeout * (std::int64_t{1} << 2 * qp.early_timeouts);
  if (!qp.adaptive.begun) {
    // Each QP with this number draws again.
    SmallGenerator generator(seed_, qp.epoch << kQpnBits | qp.qpn.value);
    adaptive_.begin(qp.adaptive, generator.draw_below(adaptive_.first_choices()));
  }
  return adaptive_.timeout(qp.adaptive);
}

Duration EngineShell::early_or(Qp& qp, Duration own, bool few) const {
  qp.adaptive.own = own;
  const auto early = early_timeout(qp, few);
  const bool more = adaptive_ || qp.early_timeouts < kMostEarly;
  qp.early_timer = early != Duration{} && early < own && more;
  return qp.early_timer ? early : own;
}

// False: the timeout counts like the queue pair's own.
bool EngineShell::early_expired(Qp& qp) {
  if (qp.early_timeouts < std::numeric_limits<std::uint8_t>::max()) ++qp.early_timeouts;
  if (adaptive_ && adaptive_.expired(qp.adaptive)) return qp.early_timer = false;
  ++counters_.roce_adp_retrans;
  return true;
}

void EngineShell::recovered(Qp& qp) const {
  qp.early_timeouts = 0;
  if (adaptive_) adaptive_.progressed(qp.adaptive);
}

void EngineShell::arm(roce::Slot slot, roce::Timer timer, std::uint8_t code, bool few) {
  auto& qp = of(slot);
  auto after = timer == roce::Timer::ack ? roce::ack_timeout(code) : roce::rnr_delay(code);
  if (timer == roce::Timer::ack && has_early_timeouts_) after = early_or(qp, after, few);
  out_.timer({qp.qpn, static_cast<std::uint32_t>(timer), after});
}

void EngineShell::cancel(roce::Slot slot, roce::Timer timer) {
  out_.timer({of(slot).qpn, static_cast<std::uint32_t>(timer), {}, true});
}

void EngineShell::reset() {
  core_->forget_all();
  tickets_.forget_all();
  qps_.clear();
  slots_.clear();
  units_.reset();
  to_give_up_.clear();
  for (auto& leaving : leaving_) leaving.clear();
  inputs_.clear();
  room_.reset();
  request_reads_ = 0;
  reads_awaited_.clear();
  checking_ = 0;
  checked_later_ = false;
  on_demand_ = false;
  tagged_gids_.clear();
}

// --- Contexts.
void EngineShell::take_context(const ContextFill& fill) {
  auto* qp = find(fill.qpn);
  if (qp == nullptr) return;
  qp->evicted = false;
  if (std::exchange(qp->resident, true)) return;
  if (fill.context) {
    set_context(*qp, *fill.context);
    return;
  }
  // The context can no longer be read: it is lost, and with it the CQs of the QP.
  set_context(*qp, {});
  qp->context.send_cqn = qp->context.receive_cqn = kNoCq;
  out_.event({EventType::qp_fatal, fill.qpn.value});
  fail(*qp);
}

void EngineShell::take_eviction(const Qpn& qpn) {
  auto* qp = find(qpn);
  if (qp == nullptr || !qp->resident || std::exchange(qp->evicted, true)) return;
  qp->eviction = ++evictions_;
  to_give_up_.push_back(qpn);
}

void EngineShell::give_up_contexts() {
  const auto kept = [this](Qpn qpn) {
    const auto* qp = find(qpn);
    return qp == nullptr || !qp->evicted || qp->in_use() || core_->in_use(qp->slot);
  };
  std::erase_if(to_give_up_, kept);
  std::ranges::sort(to_give_up_, {}, [this](Qpn qpn) { return find(qpn)->eviction; });
  for (const auto qpn : to_give_up_)
    if (auto* qp = find(qpn); qp->evicted) ask(*qp, {.kind = Qp::Question::Kind::eviction});
  to_give_up_.clear();
}

// Writes the context to ICM, and overwrites it here so that a mistaken read shows.
void EngineShell::give_up(Qp& qp, const roce::CoreState& state) {
  if (!qp.evicted || qp.in_use() || !state.idle || core_->in_use(qp.slot)) return;
  qp.evicted = false;
  out_.context_write_back({qp.qpn, context_of(qp, state)});
  std::memset(static_cast<void*>(&qp.context), kPoison, sizeof qp.context);
  qp.resident = false;
  qp.trim();
}

Tag EngineShell::issue(Qp& qp, Purpose purpose, std::uint64_t argument) {
  ++qp.tickets;
  return tickets_.issue(qp.qpn, qp.epoch, purpose, argument);
}

EngineShell::Redeemed EngineShell::redeem(Tag tag) {
  const auto* ticket = tickets_.redeem(tag);
  if (ticket == nullptr) return {};
  auto* qp = find(ticket->qpn);
  if (qp == nullptr || qp->epoch != ticket->epoch) return {.purpose = ticket->purpose};
  --qp->tickets;
  if (qp->evicted) to_give_up_.push_back(ticket->qpn);
  return {qp, ticket->purpose, ticket->argument};
}

// --- Turns of packets at the transmit units.
void EngineShell::schedule_requests(Qp& qp) {
  fetch_sends(qp);
  if (qp.request_turn || !may_request(qp)) return;
  qp.request_turn = true;
  units_.enqueue({.qpn = qp.qpn, .answers = false, .credit_class = request_class(qp), .epoch = qp.epoch}, qp.unit);
}

void EngineShell::schedule_answers(Qp& qp) {
  if (qp.answer_turn || !may_answer(qp)) return;
  qp.answer_turn = true;
  units_.enqueue({.qpn = qp.qpn, .answers = true, .credit_class = qp.credit_class, .epoch = qp.epoch}, qp.unit);
}

bool EngineShell::may_answer(Qp& qp) {
  if (!answer_waits(qp)) return false;
  return (!qp.congestion && !acks_reads_) || response_allowed(qp);
}

Duration EngineShell::next_request_at(Qp& qp) {
  // The window does not apply to a retransmission, which had room when it was first sent.
  const auto* windowed = core_->sends_again(qp.slot) ? nullptr : &qp.congestion.requests();
  const auto responses = qp.read_acks ? qp.read_acks->unanswered.bytes() : 0;
  const auto controlled = qp.congestion ? qp.congestion.not_before(now(), windowed, responses) : Duration{};
  const auto rate = qp.context.rate_limit;
  return rate == 0 ? controlled : std::max(controlled, qp.pacer.not_before(rate, qp.context.max_burst));
}

bool EngineShell::holds_back(Qp& qp, Duration at) {
  if (at <= now()) return false;
  if (at == CongestionGate::kNever) return true;  // an acknowledgement opens the window
  if (std::exchange(qp.held_back, true) && qp.held_until == at) return true;
  qp.held_until = at;
  out_.timer({qp.qpn, kHeldBackTimer, at - now()});
  return true;
}

// A datagram has a path of its own.
std::uint8_t EngineShell::unconnected_class(Qp& qp) const {
  if (qp.transport == roce::Transport::raw) return kRawCredits;
  const auto message = core_->next_send(qp.slot);
  const auto* wqe = message ? qp.wqe_of(*message) : nullptr;
  return wqe != nullptr && wqe->path ? class_of(*wqe->path) : qp.credit_class;
}

// Each packet takes a credit, which returns when the packet leaves the port. Bytes are limited, too: when a connection
// goes back, packets that wait for a full port are wasted.
void EngineShell::dispatch() {
  while ((room_.open() & units_.used()) != 0) {
    units_.settle();
    if (!units_.any(room_.open())) return;
    const auto unit = units_.next();
    if (units_.busy(unit)) {
      units_.ask(unit);
      out_.transmit_wanted(unit);
    } else {
      serve(units_.take(room_.open()), unit);
    }
  }
}

void EngineShell::serve(const TransmitUnits::Turn& turn, std::uint32_t unit) {
  auto* qp = find(turn.qpn);
  if (qp == nullptr || qp->epoch != turn.epoch) return;
  if (units_.is_at(qp->unit, turn.qpn)) return units_.enqueue(turn, qp->unit);
  (turn.answers ? qp->answer_turn : qp->request_turn) = false;
  if (qp->evicted) to_give_up_.push_back(turn.qpn);
  if (turn.answers ? !may_answer(*qp) : !may_request(*qp)) return;
  // The queue pair's path may have changed since the turn was enqueued.
  if (turn.credit_class != (turn.answers ? qp->credit_class : request_class(*qp)))
    return turn.answers ? schedule_answers(*qp) : schedule_requests(*qp);
  auto work = turn.answers ? send_answer(*qp, turn.credit_class) : send_request(*qp, turn.credit_class);
  qp->unit = work.unit = unit;
  units_.took(unit, turn.qpn);
  turn.answers ? schedule_answers(*qp) : schedule_requests(*qp);
  out_.transmit(work);
}

void EngineShell::emit_ready(Qp& qp, PacketLane& lane) {
  const bool is_request = &lane == &qp.requests;
  lane.emit_ready([&](PacketLane::Entry& entry) {
    if (!qp.reliable()) ++qp.leaving;
    leaving_[entry.credit_class].push_back({qp.qpn, qp.epoch, is_request, entry.end, entry.bytes});
    const auto* wqe = is_request ? qp.wqe_of(entry.message) : nullptr;
    const auto& path = wqe != nullptr && wqe->path ? *wqe->path : qp.context.path;
    address(entry.packet->addresses, path);
    if (ecn_forced_ && (is_request || entry.bytes != 0)) make_capable(entry.packet->addresses);
    out_.packet({qp.qpn, path.sgid_index, std::move(entry.packet), true, entry.credit_class});
  });
}

// A dropped packet gives back its credit and its bytes.
std::uint32_t EngineShell::drop(PacketLane& lane, std::uint64_t sequence) {
  std::uint32_t packets = 0;
  lane.drop_from(sequence, [&](const PacketLane::Entry& entry) {
    ++packets;
    room_.grant(entry.credit_class, 1);
    room_.give_back_bytes(entry.credit_class, entry.bytes);
  });
  return packets;
}

void EngineShell::read_ring(Qp& qp, QueueKind queue, const RingRead& read) {
  const auto purpose = queue == QueueKind::send ? Purpose::send_ring : Purpose::receive_ring;
  out_.wqe_fetch({issue(qp, purpose), qp.qpn, queue, qp.context.pasid, read.address, read.bytes});
}

void EngineShell::set_state(Qp& qp, roce::QpState state) {
  if (state == qp.state) return;
  if (trace_.state_changed) trace_.state_changed({qp.qpn, qp.state, state});
  qp.state = state;
  qp.context.state = state;
}

std::size_t EngineShell::sends_outstanding() const {
  std::size_t sends = 0;
  qps_.for_each([&](std::uint32_t, const Qp& qp) { sends += qp.send_wqes.size(); });
  return sends;
}

void EngineShell::describe_state(std::string& out) const {
  constexpr const char* kTransports[] = {"", "", "RC", "UC", "UD", "", "", "", "RAW", "XRC_SEND", "XRC_RECV"};
  constexpr const char* kNames[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  qps_.for_each([&](std::uint32_t number, const Qp& qp) {
    const auto remote = qp.resident ? fmt::format("{:#08x}", qp.context.remote_qpn) : "(in ICM)";
    const auto owner = qp.resident ? fmt::format(" of PASID {}", qp.context.pasid) : "";
    out += fmt::format("qp {:#08x}{} {} {} -> {}: {} sends outstanding, {} receives held; {}\n", number, owner,
                       kTransports[static_cast<int>(qp.transport)], kNames[static_cast<int>(qp.state)], remote,
                       qp.send_wqes.size(), qp.receive_ring.held(), core_->describe(qp.slot));
  });
}

}  // namespace rnicsim::nic
