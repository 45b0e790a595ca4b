#include "model/nic/model_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace rnicsim::nic {
namespace {

constexpr int kPoison = 0xdd;
constexpr std::uint32_t kNoCq = 0xffffff;
constexpr std::size_t kSmallInput = 32;

}  // namespace

// Answers may come while a request is made: they wait until the present input is done with.
template <auto take, class Input>
void ModelEngine::step(Input& input) {
  if (busy_) {
    // Packets and commands are large, and seldom come here.
    if constexpr (sizeof(Input) > kSmallInput)
      inputs_.push_back([this, input = std::make_unique<Input>(std::move(input))] { (this->*take)(*input); });
    else
      inputs_.push_back([this, input = std::move(input)]() mutable { (this->*take)(input); });
    return;
  }
  busy_ = true;
  (this->*take)(input);
  for (;;) {
    while (!inputs_.empty()) {
      auto next = std::move(inputs_.front());
      inputs_.pop_front();
      next();
    }
    dispatch();
    if (inputs_.empty()) break;
  }
  if (!to_give_up_.empty()) give_up_contexts();
  busy_ = false;
}

void ModelEngine::doorbell(SendDoorbell doorbell) { step<&ModelEngine::take_doorbell>(doorbell); }
void ModelEngine::wqe(WqeBytes wqe) { step<&ModelEngine::take_wqe>(wqe); }
void ModelEngine::wqe_at_hand(Tag tag) { step<&ModelEngine::take_wqe_at_hand>(tag); }
void ModelEngine::context(ContextFill fill) { step<&ModelEngine::take_context>(fill); }
void ModelEngine::evict(Qpn qpn) { step<&ModelEngine::take_eviction>(qpn); }
void ModelEngine::transmit_free(std::uint32_t unit) { step<&ModelEngine::take_unit>(unit); }
void ModelEngine::gathered(DmaDone done) { step<&ModelEngine::take_gathered>(done); }
void ModelEngine::scattered(DmaDone done) { step<&ModelEngine::take_scattered>(done); }
void ModelEngine::checked(KeyDone done) { step<&ModelEngine::take_checked>(done); }
void ModelEngine::atomic_done(AtomicDone done) { step<&ModelEngine::take_atomic>(done); }
void ModelEngine::key_changed(KeyDone done) { step<&ModelEngine::take_key_changed>(done); }
void ModelEngine::srq_taken(SrqTaken taken) { step<&ModelEngine::take_shared>(taken); }
void ModelEngine::packet(PacketIn packet) { step<&ModelEngine::take_packet>(packet); }
void ModelEngine::command(QpCommand command) { step<&ModelEngine::take_command>(command); }
void ModelEngine::timer_expired(Qpn qpn, std::uint32_t kind) {
  Expired timer{qpn, kind};
  step<&ModelEngine::take_timer>(timer);
}
void ModelEngine::cq_overrun(Qpn qpn) { step<&ModelEngine::take_overrun>(qpn); }
void ModelEngine::credit(std::uint32_t packets) { step<&ModelEngine::take_credit>(packets); }

void ModelEngine::take_wqe(const WqeBytes& wqe) {
  const auto [qp, purpose, argument] = redeem(wqe.tag);
  if (qp == nullptr) return;
  purpose == Purpose::send_ring ? sends_fetched(*qp, wqe) : receives_fetched(*qp, wqe);
  schedule(*qp);
}

void ModelEngine::take_context(const ContextFill& fill) {
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

void ModelEngine::take_wqe_at_hand(const Tag& tag) {
  const auto [qp, purpose, message] = redeem(tag);
  if (qp == nullptr) return;
  if (auto* wqe = qp->wqe_of(message)) wqe->presence = SendWqe::Presence::at_hand;
  schedule(*qp);
}

void ModelEngine::take_eviction(const Qpn& qpn) {
  auto* qp = find(qpn);
  if (qp == nullptr || !qp->resident || std::exchange(qp->evicted, true)) return;
  qp->eviction = ++evictions_;
  to_give_up_.push_back(qpn);
}

// The context goes to ICM, and what stays here is not to be read by mistake.
void ModelEngine::give_up_contexts() {
  const auto kept = [this](Qpn qpn) {
    const auto* qp = find(qpn);
    return qp == nullptr || !qp->evicted || qp->in_use();
  };
  std::erase_if(to_give_up_, kept);
  std::ranges::sort(to_give_up_, {}, [this](Qpn qpn) { return find(qpn)->eviction; });
  for (const auto qpn : to_give_up_) {
    auto* qp = find(qpn);
    if (!std::exchange(qp->evicted, false)) continue;  // it is in the list twice
    out_.context_write_back({qpn, snapshot(*qp)});
    std::memset(static_cast<void*>(&qp->context), kPoison, sizeof qp->context);
    qp->resident = false;
    qp->trim();
  }
  to_give_up_.clear();
}

void ModelEngine::take_unit(const std::uint32_t& number) { units_.free(number); }

void ModelEngine::take_gathered(DmaDone& done) {
  const auto [qp, purpose, sequence] = redeem(done.tag);
  if (qp == nullptr) return;
  purpose == Purpose::request_gather ? request_gathered(*qp, sequence, done) : answer_gathered(*qp, sequence, done);
  schedule(*qp);
}

void ModelEngine::take_scattered(const DmaDone& done) {
  const auto [qp, purpose, argument] = redeem(done.tag);
  if (qp == nullptr) return;
  if (purpose == Purpose::read_scatter) {
    read_placed(*qp, argument, done.result);
  } else {
    if (auto* response = qp->response(argument)) {
      response->placing = false;
      response->placed = true;
      response->result = done.result;
      if (trace_.request_placed && done.result == AccessResult::ok) tell_placed(qp->qpn, *response);
    }
    settle_responses(*qp);
    pump_inbound(*qp);
  }
  schedule(*qp);
}

void ModelEngine::take_checked(const KeyDone& done) {
  const auto [qp, purpose, argument] = redeem(done.tag);
  if (qp == nullptr) return;
  qp->offer.access_granted = done.result == AccessResult::ok;
  qp->inbound_waits = false;
  pump_inbound(*qp);
  schedule(*qp);
}

void ModelEngine::take_atomic(const AtomicDone& done) {
  const auto [qp, purpose, sequence] = redeem(done.tag);
  if (qp == nullptr) return;
  atomic_carried_out(*qp, sequence, done);
  schedule(*qp);
}

void ModelEngine::take_key_changed(const KeyDone& done) {
  const auto [qp, purpose, argument] = redeem(done.tag);
  if (qp == nullptr) return;
  if (purpose == Purpose::remote_invalidate) {
    key_invalidated(*qp, argument, done.result);
  } else {
    qp->requester.local_work_done(
        argument, done.result == AccessResult::ok ? roce::Status::success : roce::Status::memory_window_bind_error);
    retire(*qp, false);
  }
  schedule(*qp);
}

void ModelEngine::take_packet(PacketIn& packet) {
  auto* qp = find(packet.headers.bth.destination);
  if (qp == nullptr) return void(++counters_.unknown_qp);
  const auto& row = roce::info(packet.headers.bth.opcode);
  const bool welcome = row.transport == qp->transport && (row.response() ? qp->sends() : qp->responds());
  if (!welcome) return void(++counters_.wrong_state);
  if (!came_by_path(packet, qp->context)) return void(++counters_.wrong_path);
  row.response() ? take_response(*qp, packet) : take_request(*qp, std::move(packet));
  schedule(*qp);
}

void ModelEngine::take_command(const QpCommand& command) {
  execute(command);
  if (auto* qp = find(command.qpn)) schedule(*qp);
}

void ModelEngine::take_timer(const Expired& timer) {
  auto* qp = find(timer.qpn);
  if (qp == nullptr || !qp->sends()) return;
  if (timer.kind == Timer::rnr && qp->window.rnr_waiting) qp->requester.rnr_timeout();
  if (timer.kind == Timer::ack && std::exchange(qp->ack_timer, false)) {
    ++counters_.local_ack_timeout_err;
    if (qp->requester.ack_timeout()) drop_requests(*qp);
    retire(*qp, false);
    keep_ack_timer(*qp, true);
  }
  schedule(*qp);
}

void ModelEngine::take_overrun(const Qpn& qpn) {
  auto* qp = find(qpn);
  if (qp == nullptr || qp->state == roce::QpState::reset || qp->state == roce::QpState::error) return;
  out_.event({abi::EventType::qp_fatal, qpn.value});
  fail(*qp);
}

void ModelEngine::take_credit(const std::uint32_t& packets) {
  credits_ += packets;
  for (std::uint32_t i = 0; i < packets && !leaving_.empty(); ++i) packet_left();
}

void ModelEngine::reset() {
  tickets_.forget_all();
  qps_.clear();
  units_.reset();
  to_give_up_.clear();
  leaving_.clear();
  inputs_.clear();
  credits_ = 0;
}

Qp* ModelEngine::find(Qpn qpn) {
  return qps_.find(qpn.value);
}

Tag ModelEngine::issue(Qp& qp, Purpose purpose, std::uint64_t argument) {
  ++qp.tickets;
  return tickets_.issue(qp.qpn, qp.epoch, purpose, argument);
}

ModelEngine::Redeemed ModelEngine::redeem(Tag tag) {
  const auto ticket = tickets_.redeem(tag);
  auto* qp = ticket ? find(ticket->qpn) : nullptr;
  if (qp == nullptr || qp->epoch != ticket->epoch) return {};
  --qp->tickets;
  if (qp->evicted) to_give_up_.push_back(ticket->qpn);
  return {qp, ticket->purpose, ticket->argument};
}

void ModelEngine::schedule(Qp& qp) {
  if (!qp.request_turn && request_waits(qp) && next_wqe_at_hand(qp)) {
    qp.request_turn = true;
    units_.enqueue({qp.qpn, qp.epoch, false});
  }
  if (!qp.answer_turn && answer_waits(qp)) {
    qp.answer_turn = true;
    units_.enqueue({qp.qpn, qp.epoch, true});
  }
}

// Each packet takes a credit, which its leaving the port gives back.
void ModelEngine::dispatch() {
  while (credits_ > 0) {
    const auto next = units_.next();
    if (!next) return;
    if (!next->turn) {
      out_.transmit_wanted(next->unit);
    } else if (serve(*next->turn, next->unit)) {
      units_.took(next->unit);
    }
  }
}

// True: it took the unit.
bool ModelEngine::serve(const TransmitUnits::Turn& turn, std::uint32_t unit) {
  auto* qp = find(turn.qpn);
  if (qp == nullptr || qp->epoch != turn.epoch) return false;
  (turn.answers ? qp->answer_turn : qp->request_turn) = false;
  if (qp->evicted) to_give_up_.push_back(turn.qpn);
  if (turn.answers ? !answer_waits(*qp) : !request_waits(*qp)) return false;
  auto work = turn.answers ? send_answer(*qp) : send_request(*qp);
  schedule(*qp);
  if (!work) return false;
  work->unit = unit;
  out_.transmit(*work);
  return true;
}

void ModelEngine::emit_ready(Qp& qp, PacketLane& lane) {
  lane.emit_ready([&](PacketLane::Entry& entry) {
    Leaving leaving{qp.qpn, qp.epoch, {}};
    const SendWqe* wqe = nullptr;
    if (&lane == &qp.requests) {
      leaving.request_end = entry.end;
      wqe = qp.wqe_of(entry.message);
    }
    if (!qp.reliable()) ++qp.leaving;
    leaving_.push_back(std::move(leaving));
    const auto& path = wqe != nullptr && wqe->path ? *wqe->path : qp.context.path;
    out_.packet({qp.qpn, entry.headers, path, std::move(entry.payload)});
  });
}

void ModelEngine::read_ring(Qp& qp, QueueKind queue, const RingRead& read) {
  const auto purpose = queue == QueueKind::send ? Purpose::send_ring : Purpose::receive_ring;
  out_.wqe_fetch({issue(qp, purpose), qp.qpn, queue, qp.context.pasid, read.address, read.bytes});
}

void ModelEngine::set_state(Qp& qp, roce::QpState state) {
  if (state == qp.state) return;
  if (trace_.state_changed) trace_.state_changed({qp.qpn, qp.state, state});
  qp.state = state;
  qp.context.state = static_cast<abi::QpState>(state);
}

std::size_t ModelEngine::sends_outstanding() const {
  std::size_t sends = 0;
  qps_.for_each([&](std::uint32_t, const Qp& qp) { sends += qp.window.messages.size(); });
  return sends;
}

void ModelEngine::describe_state(std::string& out) const {
  constexpr const char* kTransports[] = {"", "", "RC", "UC", "UD"};
  constexpr const char* kNames[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  qps_.for_each([&](std::uint32_t number, const Qp& qp) {
    const auto waiting = qp.window.messages.size();
    const auto remote = qp.resident ? fmt::format("{:#08x}", std::uint32_t(qp.context.remote_qpn)) : "(in ICM)";
    const auto owner = qp.resident ? fmt::format(" of PASID {}", std::uint32_t(qp.context.pasid)) : "";
    out += fmt::format(
        "qp {:#08x}{} {} {} -> {}: {} sends outstanding, oldest psn {}, next psn {}; expects psn {}, {} receives "
        "held{}\n",
        number, owner, kTransports[static_cast<int>(qp.transport)], kNames[static_cast<int>(qp.state)], remote, waiting,
        qp.window.oldest_psn().value(), qp.window.unsent_psn.value(), qp.responder.expected_psn().value(),
        qp.receive_ring.held(), qp.window.rnr_waiting ? ", waits for an RNR timer" : "");
  });
}

}  // namespace rnicsim::nic
