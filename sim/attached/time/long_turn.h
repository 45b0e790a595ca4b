// SPDX-License-Identifier: Apache-2.0
// Decides when to report that a thread holds simulated time up. The measure is the processor time of the thread's
// process: on a busy machine the thread may have had no processor.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace rnicsim::sim {

class LongTurn {
 public:
  using Time = std::chrono::microseconds;
  struct Facts {
    Time processor_time{0};  // the process's, since it started
    bool is_stopped = false;
  };
  // A text for people, "has run for 3 s without a call", or nullopt: nothing to report now. `waited`: real time since
  // the turn began.
  std::optional<std::string> complaint(Time waited, const std::function<Facts()>& look);

 private:
  std::optional<Time> ran_before_;
  Time next_look_ = kBetweenLooks;
  Time next_complaint_ = kStuck;

  static constexpr Time kBetweenLooks{100'000};
  static constexpr Time kStuck{3'000'000};
};

}  // namespace rnicsim::sim
