// SPDX-License-Identifier: Apache-2.0
// A thread that executes sequences of operations: each operation is posted when the one before has completed. A
// sequence that begins with a lock repeats the request until it has the lock.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "model/base/fifo.h"
#include "sim/bench/agents/agent.h"
#include "sim/bench/agents/pacer.h"
#include "sim/bench/agents/station.h"
#include "sim/bench/agents/walk.h"
#include "sim/bench/flow_state.h"

namespace rnicsim::sim::bench {

class Sequencer : public Agent {
 public:
  Sequencer(Station& station, const std::vector<std::unique_ptr<Station>>& all, FlowState& state, Control& control,
            host::CpuPort& port, std::string name, std::uint64_t seed);

  void run() override;
  std::string describe() const override;

 private:
  // A place of the agent's memory in which sequences are executed one after another.
  struct Track {
    ibv_qp* qp = nullptr;
    const Walk* walk = nullptr;  // places in the peer's memory
    Walk::Place place;           // place of the lock, if there is one, and of the data after it
    Sequence sequence;           // the sequence under way
    std::size_t step = 0;        // index in `sequence`
    Duration begun;
  };
  static constexpr int kPollMost = 32;

  bool goes_on() const { return !control_.stopping && !state_.stopped; }
  std::uint64_t memory_of_track(std::uint64_t track) const;
  bool is_lock(const Track& track) const { return track.step == 0 && flow_.locks(track.sequence); }
  bool is_last(const Track& track) const { return track.step + 1 == track.sequence.count; }
  bool is_unlock(const Track& track) const { return is_last(track) && flow_.locks(track.sequence); }
  const Sequence& draw_sequence();
  bool got_lock(std::uint64_t track) const;
  void begin(std::uint32_t track);
  void post(std::uint32_t track);
  int poll();
  void complete(const ibv_wc& wc, Duration at);
  void finish(std::uint32_t track, Duration at);

  Station& station_;
  const Flow& flow_;
  FlowState& state_;
  Control& control_;
  host::CpuPort& port_;
  const std::string name_;
  Generator generator_;
  Pacer pacer_;
  std::vector<std::unique_ptr<Walk>> walks_;  // by peer
  std::vector<Track> tracks_;
  std::uint64_t weights_ = 0;  // sum over all sequences
  Fifo<std::uint32_t> idle_;
  std::array<ibv_wc, kPollMost> completions_{};
};

}  // namespace rnicsim::sim::bench
