// Drives an engine as the requester whose packets a capture shows. Work requests are posted when their first packets
// were sent. The engine may send whenever the real NIC did, one packet each time, and what it then sends is compared.
//
// An answer that makes a requester go back, or end, comes to the engine when the real NIC shows that it has seen it:
// when it goes back, or at the capture's end. A timer ends when the real NIC went back, if it was long enough.
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
    std::vector<std::optional<roce::Status>> completions;  // of each Posted
    std::vector<std::vector<std::byte>> brought;               // likewise: what landed in its buffer
    std::vector<Difference> timers;                            // that were too short
  };
  // Once. The QP is alone on the engine: what others sent does not change what it has to. EngineMismatch.
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
  std::vector<std::byte> ring_;                // blocks ever posted
  std::vector<std::size_t> request_of_block_;  // whose they are
  std::size_t posted_ = 0;
  std::size_t due_ = 0;                       // packets that the real NIC has sent
  std::vector<const WireEvent*> held_;        // answers that it has not shown to have seen
  std::map<std::uint32_t, Duration> timers_;  // by kind, how long
  std::set<std::uint32_t> wanted_;            // transmit units that something waits for
  std::uint32_t frame_ = 0;                   // of the present event
  Result result_;
};

}  // namespace rnicsim::sim::replay
