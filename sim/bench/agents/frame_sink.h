// SPDX-License-Identifier: Apache-2.0
// A thread that keeps receives posted on a queue of raw packets, as fast as it can. Frames without a receive are lost.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <string>

#include "model/host/cpu_port.h"
#include "sim/bench/agents/agent.h"
#include "sim/bench/agents/station.h"
#include "sim/bench/flow_state.h"

namespace rnicsim::sim::bench {

class FrameSink : public Agent {
 public:
  // `queue`: index of the queue in FlowState::received.
  FrameSink(Station& station, FlowState& state, std::size_t queue, Control& control, host::CpuPort& port,
            std::string name);

  void fill() override;
  void run() override;

  std::string describe() const override;

 private:
  static constexpr int kPollMost = 32;

  void prepare(std::size_t i, std::uint64_t slot, bool last);
  void post();

  Station& station_;
  FlowState& state_;
  const std::size_t queue_;
  Control& control_;
  host::CpuPort& port_;
  const std::string name_;
  std::array<ibv_recv_wr, kPollMost> wrs_{};
  std::array<ibv_sge, kPollMost> sges_{};
  std::array<ibv_wc, kPollMost> completions_{};
  std::uint64_t received_ = 0;
};

}  // namespace rnicsim::sim::bench
