// The PFC watchdog of a switch, as SONiC has it: finds queues that the other end of their cable keeps paused (a pause
// storm), and says when a storm is over. What is done about a storm is the switch's matter.
//
// There is an event only while a queue is paused.
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

// For a message at the end.
struct PauseStorm {
  std::uint32_t port = 0;
  std::uint8_t priority = 0;
  Duration since{};                        // the queue sent nothing
  Duration detected{};
  Duration restored{};                     // 0: it was not
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
  // The time within which a storm ends or is acted upon; 0: the watchdog does nothing about it.
  Duration acts_within() const { return action_ == Action::alert ? Duration{} : params_.detection_time; }

  // Since when the first frame of a queue could have left, but for others and pauses; nullopt: the queue is empty.
  std::function<std::optional<Duration>(Queue)> waits_since;
  std::function<void(Queue)> storm_began, storm_ended;

  // --- What happens to a queue. `until`: the pause's end; the present ends the pause.
  void paused(Queue queue, Duration until);
  void left(Queue queue);
  bool in_storm(Queue queue) const { return watches() && of(queue).in_storm; }

  const std::vector<PauseStorm>& storms() const { return storms_; }

 private:
  struct State {
    Duration since{};                      // of pauses without a gap
    Duration until{};
    Duration last_left{};
    std::uint64_t look = 0;                // number of the look that is due; 0: none
    bool in_storm = false;
    std::size_t storm = 0;                 // in storms_
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
