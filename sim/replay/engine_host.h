// SPDX-License-Identifier: Apache-2.0
// Surroundings of an engine for any replay: binds its outputs, brings its queue pairs to RTS, and answers each
// transaction by the present HostSide as soon as the engine has returned.
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

// Host, wire and clock of one part of a replay.
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
  // Binds the engine's outputs: at most one EngineHost for an engine. `rd_atomic`: READs and atomics that its QPs may
  // have in flight. `made_by`: a lockstep mismatch there ends the run; nullptr: not checked.
  EngineHost(nic::QpEngine& engine, std::uint8_t rd_atomic, const Engines* made_by);
  EngineHost(const EngineHost&) = delete;
  EngineHost& operator=(const EngineHost&) = delete;

  nic::QpEngine& engine() { return engine_; }
  // Resets the engine and connects it to `side`.
  void begin(HostSide& side);
  // Creates a QP with these attributes, and brings it to RTS. std::runtime_error: the engine refuses.
  void connect(nic::Qpn qpn, nic::QpContext context);
  // Runs until the engine is idle, except for timers that the engine keeps itself. EngineMismatch.
  void settle();
  // Lets simulated time pass, for an engine that keeps its timers itself.
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

// Context fields common to all QPs of a replay.
nic::QpContext plain_context();

// Appends a segment to the bytes of a WQE.
template <class Segment>
void append(std::vector<std::byte>& wqe, const Segment& segment) {
  const auto bytes = std::as_bytes(std::span(&segment, 1));
  wqe.insert(wqe.end(), bytes.begin(), bytes.end());
}

}  // namespace rnicsim::sim::replay
