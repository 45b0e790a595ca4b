// SPDX-License-Identifier: Apache-2.0
// A thread that posts operations and polls their completions, as fast as its window allows.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "model/base/fifo.h"
#include "model/host/cpu_port.h"
#include "sim/bench/agents/agent.h"
#include "sim/bench/agents/frame_source.h"
#include "sim/bench/agents/pacer.h"
#include "sim/bench/agents/station.h"
#include "sim/bench/agents/walk.h"
#include "sim/bench/flow_state.h"

namespace rnicsim::sim::bench {

class Sender : public Agent {
 public:
  Sender(Station& station, const std::vector<std::unique_ptr<Station>>& all, FlowState& state, Control& control,
         host::CpuPort& port, std::string name, std::uint64_t seed);

  void run() override;
  std::string describe() const override;

 private:
  struct Queue {
    ibv_qp* qp = nullptr;
    ibv_ah* ah = nullptr;  // UD only, with remote_qpn
    std::uint32_t remote_qpn = 0;
    std::uint32_t remote_srqn = 0;  // XRC: the peer's shared receive queue
    const Walk* remote_walk = nullptr;
    FrameSource* frames = nullptr;  // raw packets
    Walk::Place local;
    Walk::Place remote;
    std::uint32_t posted = 0;     // since the run began, modulo 2^32
    std::uint32_t completed = 0;  // since the run began, as far as completions have been polled
    std::uint32_t unsignalled = 0;
  };
  // An operation that is under way.
  struct Posted {
    Duration at;
    std::uint8_t mix = 0;
  };
  static constexpr int kPollMost = 32;
  static constexpr int kPostMost = 128;  // limit of the batches between two polls, however many queues have room

  void post_ready();
  std::uint32_t take_queue();
  void give_back(std::uint32_t queue) {
    if (flow_.pick == Pick::random)
      ready_random_.push_back(queue);
    else
      ready_.push_back(std::uint32_t(queue));
  }
  void post_batch(std::uint32_t number);
  bool is_signalled(Queue& queue);
  void choose_last(Queue& queue, bool has_room);
  void fill(ibv_send_wr& wr, ibv_sge& sge, Queue& queue, const MixedOp& op);
  void fill_frame(ibv_send_wr& wr, ibv_sge& sge, std::uint32_t number, const MixedOp& op);
  std::size_t pick_op() { return flow_.mix.size() == 1 ? 0 : draw_op(); }
  std::size_t draw_op();
  int poll();  // returns the number of completions
  void complete(const ibv_wc& wc, Duration at);

  Posted& slot(std::uint32_t queue, std::uint32_t sequence) {
    return posted_[(std::size_t(queue) << log_slots_) + (sequence & ((1u << log_slots_) - 1))];
  }

  Station& station_;
  const Flow& flow_;
  FlowState& state_;
  Control& control_;
  host::CpuPort& port_;
  const std::string name_;
  Generator generator_;
  Walk walk_;
  std::vector<std::unique_ptr<Walk>> remote_walks_;   // by peer
  std::vector<std::unique_ptr<FrameSource>> frames_;  // by peer
  std::vector<Queue> queues_;
  Fifo<std::uint32_t> ready_;                // queues with room for a batch
  std::vector<std::uint32_t> ready_random_;  // the same, for pick = random
  std::uint32_t log_slots_ = 0;
  std::vector<Posted> posted_;
  std::vector<ibv_send_wr> wrs_;
  std::vector<ibv_sge> sges_;
  std::array<ibv_wc, kPollMost> completions_{};
  std::uint64_t weights_ = 0;
  std::uint32_t outstanding_ = 0;
  std::uint32_t unsignalled_ = 0;  // consecutive unsignalled WQEs, over all QPs
  std::uint32_t signals_ = 0;      // CQEs that are expected
  Pacer pacer_;
};

}  // namespace rnicsim::sim::bench
