// SPDX-License-Identifier: Apache-2.0
#include "model/nic/engine/jittered_engine.h"

#include <algorithm>
#include <utility>

namespace rnicsim::nic {
namespace {

constexpr std::uint64_t kStallEvery = 64;  // one of this many delayed transactions stalls
constexpr std::int64_t kStall = 8;         // length of a stall, in `delay`

}  // namespace

void JitterParams::describe(ParamVisitor& visit) {
  visit.param(
      "delay", delay,
      "largest random delay of a transaction to or from the QP engine, which may overtake other transactions; 0: none",
      {0, 1e9});
  visit.param("seed", seed, "seed of these delays");
}

JitteredEngine::JitteredEngine(const JitterParams& params, std::unique_ptr<QpEngine> engine)
    : params_(params), engine_(std::move(engine)), random_(params.seed) {
  bind_outputs();
}

// Half of the transactions are not delayed.
Duration JitteredEngine::draw() {
  const auto drawn = random_();
  if ((drawn & 1) == 0) return {};
  const auto delay = static_cast<std::int64_t>((drawn >> 8) % static_cast<std::uint64_t>(params_.delay.ps + 1));
  return Duration{(drawn >> 1) % kStallEvery == 0 ? kStall * params_.delay.ps : delay};
}

void JitteredEngine::later(std::function<void()> action) { pending_.push(now() + draw(), std::move(action)); }

void JitteredEngine::in_order(std::uint32_t number, Streams streams, std::function<void()> action) {
  auto at = now() + draw();
  for (const auto stream : streams) at = std::max(at, last_[{number, stream}]);
  for (const auto stream : streams) last_[{number, stream}] = at;
  pending_.push(at, std::move(action));
}

void JitteredEngine::due() {
  std::function<void()> action;
  while (pending_.pop_due(action)) action();
}

// --- In. A context, its eviction and a command keep their places among all inputs of their QP.
void JitteredEngine::doorbell(SendDoorbell&& doorbell) {
  in_order(doorbell.qpn.value, {Stream::doorbell_in},
           [this, doorbell]() mutable { engine_->doorbell(std::move(doorbell)); });
}
void JitteredEngine::packet(PacketIn&& packet) {
  in_order(packet.destination.value, {Stream::packet_in},
           [this, packet]() mutable { engine_->packet(std::move(packet)); });
}
void JitteredEngine::context(ContextFill fill) {
  in_order(fill.qpn.value, kIn, [this, fill] { engine_->context(fill); });
}
void JitteredEngine::evict(Qpn qpn) {
  in_order(qpn.value, kIn, [this, qpn] { engine_->evict(qpn); });
}
void JitteredEngine::command(QpCommand command) {
  in_order(command.qpn.value, kIn, [this, command] {
    commanded_ = command.qpn;
    engine_->command(command);
  });
}
void JitteredEngine::cq_overrun(Qpn qpn) {
  in_order(qpn.value, {Stream::overrun_in}, [this, qpn] { engine_->cq_overrun(qpn); });
}
void JitteredEngine::timer_expired(Qpn qpn, std::uint32_t kind) {
  const auto arming = armings_[{qpn.value, kind}];
  in_order(qpn.value, {Stream::timer_in}, [this, qpn, kind, arming] {
    if (armings_[{qpn.value, kind}] == arming) engine_->timer_expired(qpn, kind);
  });
}

void JitteredEngine::wqe(WqeBytes&& wqe) {
  later([this, wqe = std::move(wqe)]() mutable { engine_->wqe(std::move(wqe)); });
}
void JitteredEngine::wqe_at_hand(Tag tag) {
  later([this, tag] { engine_->wqe_at_hand(tag); });
}
void JitteredEngine::receives_displaced(Qpn qpn) {
  later([this, qpn] { engine_->receives_displaced(qpn); });
}
void JitteredEngine::transmit_free(std::uint32_t unit) {
  later([this, unit] { engine_->transmit_free(unit); });
}
void JitteredEngine::gathered(DmaDone&& done) {
  later([this, done = std::move(done)]() mutable { engine_->gathered(std::move(done)); });
}
void JitteredEngine::scattered(DmaDone&& done) {
  later([this, done = std::move(done)]() mutable { engine_->scattered(std::move(done)); });
}
void JitteredEngine::checked(KeyDone done) {
  later([this, done] { engine_->checked(done); });
}
void JitteredEngine::atomic_done(AtomicDone done) {
  later([this, done] { engine_->atomic_done(done); });
}
void JitteredEngine::key_changed(KeyDone done) {
  later([this, done] { engine_->key_changed(done); });
}
void JitteredEngine::srq_taken(SrqTaken taken) {
  later([this, taken] { engine_->srq_taken(taken); });
}

// Credits beyond the packets that the NIC has taken are initial room.
void JitteredEngine::credit(std::uint8_t credit_class, std::uint32_t packets) {
  auto& [put, sent] = packets_[credit_class];
  for (; packets != 0 && !sent.empty(); --packets) {
    put[sent.front()] = true;
    sent.pop_front();
  }
  std::uint32_t heard = packets;
  for (; !put.empty() && put.begin()->second; put.erase(put.begin())) ++heard;
  if (heard != 0) engine_->credit(credit_class, heard);
}

void JitteredEngine::reset() {
  pending_.clear();
  last_.clear();
  armings_.clear();
  packets_ = {};
  engine_->reset();
}

// --- Out.
template <class Item>
void JitteredEngine::relay(Output<Item>& from, const Output<Item>& to) {
  from.bind([this, &to](const Item& item) { later([&to, item] { to(item); }); });
}

template <class Item, class Number>
void JitteredEngine::relay(Output<Item>& from, const Output<Item>& to, Stream stream, Number number) {
  from.bind(
      [this, &to, stream, number](const Item& item) { in_order(number(item), {stream}, [&to, item] { to(item); }); });
}

void JitteredEngine::bind_outputs() {
  const auto qp = [](const auto& item) { return item.qpn.value; };
  auto& from = engine_->outputs();
  // Not delayed: a fill must not pass the write-back.
  from.context_write_back.bind([this](ContextWriteBack back) { out_.context_write_back(std::move(back)); });
  relay(from.wqe_fetch, out_.wqe_fetch);
  relay(from.gather, out_.gather);
  relay(from.access_check, out_.access_check);
  relay(from.presence_check, out_.presence_check);
  relay(from.invalidate, out_.invalidate, Stream::key_out, qp);
  relay(from.bind_window, out_.bind_window, Stream::key_out, qp);
  relay(from.fast_register, out_.fast_register, Stream::key_out, qp);
  relay(from.scatter, out_.scatter, Stream::scatter_out, qp);
  relay(from.atomic, out_.atomic, Stream::atomic_out, qp);
  relay(from.srq_take, out_.srq_take, Stream::srq_out, qp);
  relay(from.srq_give_back, out_.srq_give_back, Stream::srq_out, qp);
  relay(from.transmit, out_.transmit, Stream::unit_out, [](const TransmitWork& work) { return work.unit; });
  relay(from.transmit_wanted, out_.transmit_wanted, Stream::unit_out, [](std::uint32_t unit) { return unit; });
  relay(from.wqe_held, out_.wqe_held, Stream::wqe_out, qp);
  relay(from.wqe_needed, out_.wqe_needed, Stream::wqe_out, qp);
  relay(from.wqe_retired, out_.wqe_retired, Stream::wqe_out, qp);
  relay(from.congestion_seen, out_.congestion_seen, Stream::packet_out, qp);
  relay(from.cqe, out_.cqe, Stream::cqe_out, [](const CqeWrite& write) { return write.cqe.qpn; });
  // The event of the last receive follows its completion.
  from.event.bind([this](const EventOut& event) {
    const bool last = event.type == EventType::last_wqe_reached;
    in_order(event.number, last ? Streams{Stream::event_out, Stream::cqe_out} : Streams{Stream::event_out},
             [this, event] { out_.event(event); });
  });
  from.packet.bind([this](const PacketOut& packet) {
    const auto number = next_packet_++;
    packets_[packet.credit_class].put.try_emplace(number);
    in_order(packet.source.value, {Stream::packet_out}, [this, number, packet] {
      packets_[packet.credit_class].sent.push_back(std::uint64_t{number});
      out_.packet(packet);
    });
  });
  from.timer.bind([this](const TimerArm& timer) {
    ++armings_[{timer.qpn.value, timer.kind}];
    in_order(timer.qpn.value, {Stream::timer_out}, [this, timer] { out_.timer(timer); });
  });
  // After all earlier outputs of its QP; the command unit executes one command at a time.
  from.command_done.bind([this](const QpCommandDone& done) {
    in_order(commanded_.value, kOut, [this, done] { out_.command_done(done); });
  });
}

}  // namespace rnicsim::nic
