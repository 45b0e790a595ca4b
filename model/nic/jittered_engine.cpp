#include "model/nic/jittered_engine.h"

#include <algorithm>
#include <utility>

namespace rnicsim::nic {
namespace {

constexpr std::uint64_t kStallEvery = 64;   // one of so many transactions stalls
constexpr std::int64_t kStall = 8;          // for so many delays

}  // namespace

void JitterParams::describe(ParamVisitor& visit) {
  visit.param("delay", delay,
              "a transaction to or from the QP engine takes up to so long more, at random, and may overtake others; 0: none",
              {0, 1e9});
  visit.param("seed", seed, "of these delays");
}

JitteredEngine::JitteredEngine(const JitterParams& params, std::unique_ptr<QpEngine> engine)
    : params_(params), engine_(std::move(engine)), random_(params.seed) {
  bind_outputs();
}

// Half of all pass at once.
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

// --- In. A context, its eviction and a command keep their places among all that is about their QP.
void JitteredEngine::doorbell(SendDoorbell doorbell) {
  in_order(doorbell.qpn.value, {Stream::doorbell_in}, [this, doorbell] { engine_->doorbell(doorbell); });
}
void JitteredEngine::packet(PacketIn packet) {
  in_order(packet.headers.bth.destination.value, {Stream::packet_in}, [this, packet] { engine_->packet(packet); });
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

void JitteredEngine::wqe(WqeBytes wqe) {
  later([this, wqe] { engine_->wqe(wqe); });
}
void JitteredEngine::wqe_at_hand(Tag tag) {
  later([this, tag] { engine_->wqe_at_hand(tag); });
}
void JitteredEngine::transmit_free(std::uint32_t unit) {
  later([this, unit] { engine_->transmit_free(unit); });
}
void JitteredEngine::gathered(DmaDone done) {
  later([this, done] { engine_->gathered(done); });
}
void JitteredEngine::scattered(DmaDone done) {
  later([this, done] { engine_->scattered(done); });
}
void JitteredEngine::checked(DmaDone done) {
  later([this, done] { engine_->checked(done); });
}
void JitteredEngine::atomic_done(AtomicDone done) {
  later([this, done] { engine_->atomic_done(done); });
}
void JitteredEngine::invalidated(DmaDone done) {
  later([this, done] { engine_->invalidated(done); });
}

// Those beyond what the NIC has taken are room.
void JitteredEngine::credit(std::uint32_t packets) {
  for (; packets != 0 && !sent_.empty(); --packets) {
    packets_[sent_.front()] = true;
    sent_.pop_front();
  }
  std::uint32_t heard = packets;
  for (; !packets_.empty() && packets_.begin()->second; packets_.erase(packets_.begin())) ++heard;
  if (heard != 0) engine_->credit(heard);
}

void JitteredEngine::reset() {
  pending_.clear();
  last_.clear();
  armings_.clear();
  packets_.clear();
  sent_.clear();
  engine_->reset();
}

// --- Out. The answer to a command is behind all that its QP has put out before.
void JitteredEngine::bind_outputs() {
  auto& from = engine_->outputs();
  // At once: until it is put out the engine has the context, and a fill changes nothing.
  from.context_write_back.bind([this](ContextWriteBack back) { out_.context_write_back(std::move(back)); });
  from.wqe_fetch.bind([this](WqeFetch fetch) {
    later([this, fetch] { out_.wqe_fetch(fetch); });
  });
  from.gather.bind([this](Gather gather) {
    later([this, gather] { out_.gather(gather); });
  });
  from.access_check.bind([this](AccessCheck check) {
    later([this, check] { out_.access_check(check); });
  });
  from.invalidate.bind([this](Invalidate invalidate) {
    later([this, invalidate] { out_.invalidate(invalidate); });
  });
  from.scatter.bind([this](Scatter scatter) {
    in_order(scatter.qpn.value, {Stream::scatter_out}, [this, scatter] { out_.scatter(scatter); });
  });
  from.atomic.bind([this](Atomic atomic) {
    in_order(atomic.qpn.value, {Stream::atomic_out}, [this, atomic] { out_.atomic(atomic); });
  });
  from.transmit.bind([this](TransmitWork work) {
    in_order(work.unit, {Stream::unit_out}, [this, work] { out_.transmit(work); });
  });
  from.transmit_wanted.bind([this](std::uint32_t unit) {
    in_order(unit, {Stream::unit_out}, [this, unit] { out_.transmit_wanted(std::uint32_t{unit}); });
  });
  from.packet.bind([this](PacketOut packet) {
    const auto number = next_packet_++;
    packets_.try_emplace(number);
    in_order(packet.source.value, {Stream::packet_out}, [this, number, packet] {
      sent_.push_back(std::uint64_t{number});
      out_.packet(packet);
    });
  });
  from.wqe_held.bind([this](WqeHeld wqe) {
    in_order(wqe.qpn.value, {Stream::wqe_out}, [this, wqe] { out_.wqe_held(wqe); });
  });
  from.wqe_needed.bind([this](WqeNeeded wqe) {
    in_order(wqe.qpn.value, {Stream::wqe_out}, [this, wqe] { out_.wqe_needed(wqe); });
  });
  from.wqe_retired.bind([this](WqeRetired wqe) {
    in_order(wqe.qpn.value, {Stream::wqe_out}, [this, wqe] { out_.wqe_retired(wqe); });
  });
  from.cqe.bind([this](CqeWrite write) {
    in_order(write.cqe.qpn, {Stream::cqe_out}, [this, write] { out_.cqe(write); });
  });
  from.event.bind([this](EventOut event) {
    in_order(event.number, {Stream::event_out}, [this, event] { out_.event(event); });
  });
  from.timer.bind([this](TimerArm timer) {
    ++armings_[{timer.qpn.value, timer.kind}];
    in_order(timer.qpn.value, {Stream::timer_out}, [this, timer] { out_.timer(timer); });
  });
  from.command_done.bind([this](QpCommandDone done) {
    // (The command unit has one at a time.)
    in_order(commanded_.value, kOut, [this, done] { out_.command_done(done); });
  });
}

}  // namespace rnicsim::nic
