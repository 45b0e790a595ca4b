// SPDX-License-Identifier: Apache-2.0
// A thread that keeps receives posted for the senders of its flow.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/bench/agents/agent.h"
#include "sim/bench/agents/station.h"
#include "sim/bench/agents/walk.h"
#include "sim/bench/flow_state.h"

namespace rnicsim::sim::bench {

class Receiver : public Agent {
 public:
  Receiver(Station& station, FlowState& state, Control& control, std::string name);

  void fill() override;
  void run() override;

  std::string describe() const override;

 private:
  static constexpr int kPollMost = 32;
  static constexpr std::size_t kPostMost = 32;

  void post(std::size_t queue, std::size_t count);

  Station& station_;
  const Flow& flow_;
  FlowState& state_;
  Control& control_;
  const std::string name_;
  Walk walk_;
  Generator generator_;
  std::vector<Walk::Place> places_;  // by QP
  std::array<ibv_recv_wr, kPostMost> wrs_{};
  std::array<ibv_sge, kPostMost> sges_{};
  std::array<ibv_wc, kPollMost> completions_{};
  std::uint64_t received_ = 0;
};

}  // namespace rnicsim::sim::bench
