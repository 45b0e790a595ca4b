// SPDX-License-Identifier: Apache-2.0
// Drives an engine as the responder of a capture: feeds requests, and messages of UC and UD. Each transaction is
// answered at once from the implied environment; the next packet follows when the engine is idle.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/replay/comparer.h"
#include "sim/replay/engine_host.h"
#include "sim/replay/environment.h"
#include "sim/replay/memory.h"

namespace rnicsim::sim::replay {

// Bytes of READ responses and of original values of atomics. checked: the engine had written them. learnt: known only
// from the captured answer.
struct MemoryUse {
  std::uint64_t checked = 0;
  std::uint64_t learnt = 0;
};

class ResponderDriver : public HostSide {
 public:
  ResponderDriver(EngineHost& host, const Environment& environment);

  // Answers of a QP, and messages delivered to its program.
  struct Result {
    std::vector<Answer> answers;
    std::vector<Delivery> deliveries;
  };
  // Creates the QPs and feeds each packet in the order of the capture. Results by QP, in the order of Environment::qps.
  // EngineMismatch.
  std::vector<Result> run();

  const MemoryUse& memory_use() const { return memory_use_; }

 private:
  struct Side {  // state of a QP on the host's side
    const QpEnvironment* qp = nullptr;
    std::vector<std::uint32_t> receives;                      // size of each receive WQE ever posted, in bytes
    std::map<std::uint64_t, std::vector<std::byte>> buffers;  // received data by number of the receive
    std::uint64_t written = 0;                                // bytes of the present WRITE so far
    Result result;
  };

  nic::WqeBytes fetch(const nic::WqeFetch& fetch) override;
  nic::DmaDone gather(const nic::Gather& request) override;
  nic::AccessResult scatter(const nic::Scatter& request) override;
  nic::AccessResult check(const nic::AccessCheck& request) override;
  nic::AtomicDone atomic(const nic::Atomic& request) override;
  void packet(const nic::PacketOut& packet) override;
  void received(const nic::CqeWrite& cqe) override;
  void sent(const nic::WqeRetired&) override {}
  void timer(const nic::TimerArm&) override {}
  void transmit_wanted(std::uint32_t unit) override { host_.engine().transmit_free(unit); }

  void feed(Side& side, const Request& request);
  void take_write(Side& side, const Request& request);
  void learn(const Side& side, const Request& request);
  Side& side_of(roce::Qpn qpn);
  std::uint64_t receive_of(const Side& side, std::uint16_t index) const;
  nic::AccessResult check_region(const nic::Region& region) const;
  nic::AccessResult to_receive(Side& side, const nic::Region& region, std::span<const std::byte> bytes);
  void count(std::size_t bytes, std::size_t written);

  EngineHost& host_;
  const Environment& environment_;
  Memory memory_;
  MemoryUse memory_use_;
  std::map<std::uint32_t, Side> sides_;  // by the engine's QP number
  const Request* current_ = nullptr;     // request that the engine works on
  std::uint32_t current_mtu_ = 0;
};

}  // namespace rnicsim::sim::replay
