// SPDX-License-Identifier: Apache-2.0
// Drives an engine as the requester of a capture. A work request is posted when its first packet was sent. The engine
// may send one packet each time the real NIC sent one, and this packet is compared.
//
// An answer that makes a requester retransmit or end is held back until the real NIC shows that it has seen the answer:
// until it retransmits, or to the capture's end. A timer expires when the real NIC retransmitted, if the engine's timer
// is long enough.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "sim/replay/comparer.h"
#include "sim/replay/engine_host.h"
#include "sim/replay/requester_environment.h"

namespace rnicsim::sim::replay {

class RequesterDriver : public HostSide {
 public:
  RequesterDriver(EngineHost& host, const RequesterEnvironment& qp) : host_(host), qp_(qp) {}

  struct Result {
    std::vector<SentPacket> sent;
    std::vector<std::optional<roce::Status>> completions;  // by index of Posted; nullopt: no completion
    std::vector<std::vector<std::byte>> brought;           // by index of Posted: data in the request's buffer
    std::vector<Difference> timers;                        // timers that were too short
  };
  // Call once. The QP is alone on the engine, because other QPs' packets do not influence it. EngineMismatch.
  Result run();

 private:
  nic::WqeBytes fetch(const nic::WqeFetch& fetch) override;
  nic::DmaDone gather(const nic::Gather& request) override;
  nic::AccessResult scatter(const nic::Scatter& request) override;
  nic::AccessResult check(const nic::AccessCheck&) override { return nic::AccessResult::ok; }
  nic::AtomicDone atomic(const nic::Atomic& request) override;
  void packet(const nic::PacketOut& packet) override;
  void received(const nic::CqeWrite&) override {}
  void sent(const nic::WqeRetired& retired) override;
  void timer(const nic::TimerArm& arm) override;
  void transmit_wanted(std::uint32_t unit) override { wanted_.insert(unit); }

  void send(const WireEvent& event);
  void answer(const WireEvent& event);
  void post();
  void release();
  void let_send();
  void end_timer(const WireEvent& event);
  void pass_timer(const WireEvent& event);
  std::optional<Duration> expire(Duration within);
  void too_early(const WireEvent& event, Duration waited);
  void finish();

  EngineHost& host_;
  const RequesterEnvironment& qp_;
  std::vector<std::byte> ring_;                // all blocks ever posted
  std::vector<std::size_t> request_of_block_;  // index of the request that owns the block
  std::size_t posted_ = 0;
  std::size_t due_ = 0;                       // number of packets that the real NIC has sent
  std::vector<const WireEvent*> held_;        // answers held back
  std::map<std::uint32_t, Duration> timers_;  // duration by kind of timer
  std::set<std::uint32_t> wanted_;            // transmit units with a waiting QP
  std::uint32_t frame_ = 0;                   // frame of the present event
  Result result_;
};

}  // namespace rnicsim::sim::replay
