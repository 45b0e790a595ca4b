// SPDX-License-Identifier: Apache-2.0
// PFC watchdog of a switch, as in SONiC: detects queues that the peer keeps paused (a pause storm), and the end of a
// storm. The switch decides how to react.
//
// Uses events only while a queue is paused.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "model/base/event_queue.h"
#include "model/base/ports/priority_map.h"
#include "model/base/units.h"
#include "model/fabric/pause_watchdog_params.h"

namespace rnicsim::fabric {

// Record of a storm for the messages at the end of the run.
struct PauseStorm {
  std::uint32_t port = 0;
  std::uint8_t priority = 0;
  Duration since{};  // time since which the queue sent nothing
  Duration detected{};
  Duration restored{};  // 0: not restored
};

class PauseWatchdog {
 public:
  enum class Action : std::uint8_t { drop, forward, alert };
  struct Queue {
    std::uint32_t port = 0;
    std::uint8_t priority = 0;
  };

  PauseWatchdog(const PauseWatchdogParams& params, std::size_t ports);

  bool watches() const { return params_.detection_time != Duration{}; }
  Action action() const { return action_; }
  // Time within which the watchdog ends a storm; 0: it never does.
  Duration acts_within() const { return action_ == Action::alert ? Duration{} : params_.detection_time; }

  // Time since which the queue's first frame could have left without other frames and pauses; nullopt: the queue is
  // empty.
  std::function<std::optional<Duration>(Queue)> waits_since;
  std::function<void(Queue)> storm_began, storm_ended;

  // --- Events of a queue. `until`: end of the pause; the present time ends it at once.
  void paused(Queue queue, Duration until);
  void left(Queue queue);
  bool in_storm(Queue queue) const { return watches() && of(queue).in_storm; }

  const std::vector<PauseStorm>& storms() const { return storms_; }

 private:
  struct State {
    Duration since{};  // start of the present sequence of pauses without a gap
    Duration until{};
    Duration last_left{};
    std::uint64_t look = 0;  // number of the scheduled check; 0: none
    bool in_storm = false;
    std::size_t storm = 0;  // index in storms_
  };

  struct Look {
    Queue queue;
    std::uint64_t number = 0;
  };

  State& of(Queue queue) { return states_[queue.port][queue.priority]; }
  const State& of(Queue queue) const { return states_[queue.port][queue.priority]; }
  void look_due();
  void look(Queue queue, State& state);
  void look_at(Queue queue, State& state, Duration when);

  const PauseWatchdogParams params_;
  const Action action_;
  std::vector<std::array<State, kPriorities>> states_;
  std::vector<PauseStorm> storms_;
  std::uint64_t looks_made_ = 0;
  EventQueue<Look> looks_{[this] { look_due(); }};
};

}  // namespace rnicsim::fabric
