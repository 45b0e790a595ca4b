// What an engine needs around it, whatever is replayed: its outputs bound, its queue pairs brought to RTS, and every
// transaction answered, as soon as the engine has returned, by whoever has the replay in hand.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "model/nic/seam/qp_engine.h"
#include "sim/engine_choice.h"

namespace rnicsim::sim::replay {

// The host, the wire and the clock of one part of a replay.
class HostSide {
 public:
  virtual ~HostSide() = default;
  virtual nic::WqeBytes fetch(const nic::WqeFetch& fetch) = 0;
  virtual nic::DmaDone gather(const nic::Gather& gather) = 0;
  virtual nic::AccessResult scatter(const nic::Scatter& scatter) = 0;
  virtual nic::AccessResult check(const nic::AccessCheck& check) = 0;
  virtual nic::AtomicDone atomic(const nic::Atomic& atomic) = 0;
  virtual void packet(const nic::PacketOut& packet) = 0;
  virtual void received(const nic::CqeWrite& cqe) = 0;
  virtual void sent(const nic::WqeRetired& retired) = 0;
  virtual void timer(const nic::TimerArm& arm) = 0;
  virtual void transmit_wanted(std::uint32_t unit) = 0;
};

class EngineHost {
 public:
  // Binds the engine's outputs: one host an engine. `rd_atomic`: READs and atomics that its QPs may have in flight.
  // `made_by`: whose mismatch ends the run.
  EngineHost(nic::QpEngine& engine, std::uint8_t rd_atomic, const Engines* made_by);
  EngineHost(const EngineHost&) = delete;
  EngineHost& operator=(const EngineHost&) = delete;

  nic::QpEngine& engine() { return engine_; }
  // The engine forgets all, and is `side`'s from now on.
  void begin(HostSide& side);
  // Creates a QP that has these attributes, and brings it to RTS. std::runtime_error: the engine refuses.
  void connect(nic::Qpn qpn, nic::QpContext context);
  // Until the engine is at rest, but for timers that it keeps itself. EngineMismatch.
  void settle();
  // Lets an engine that keeps its timers itself go on for so long.
  void pass(Duration time);
  bool keeps_time() const;

 private:
  void bind();
  void bind_requests();
  void command(nic::Qpn qpn, const nic::QpContext& context, nic::QpCommand::Kind kind, roce::QpState to,
               std::uint32_t attributes);
  void answer_all();
  void later(std::function<void()> answer) { pending_.push_back(std::move(answer)); }

  nic::QpEngine& engine_;
  const std::uint8_t rd_atomic_;
  const Engines* const made_by_;
  HostSide* side_ = nullptr;
  std::deque<std::function<void()>> pending_;
  nic::Tag next_tag_ = 1;
  std::optional<nic::QpCommandDone> command_done_;
};

// What all contexts of a replay have.
nic::QpContext plain_context();

// Appends a segment to the bytes of a WQE.
template <class Segment>
void append(std::vector<std::byte>& wqe, const Segment& segment) {
  const auto bytes = std::as_bytes(std::span(&segment, 1));
  wqe.insert(wqe.end(), bytes.begin(), bytes.end());
}

}  // namespace rnicsim::sim::replay
