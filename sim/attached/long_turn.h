// A turn that lasts: when its thread is said to hold time up, and why. It goes by what the thread has run, for on a
// busy machine it may have had no processor.
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
    Time processor_time{0};  // of its process, since this began
    bool is_stopped = false;
  };
  // "has run for 3 s without a call", for people; seldom, and only if it is so. `waited`: since the turn began.
  std::optional<std::string> complaint(Time waited, const std::function<Facts()>& look);

 private:
  std::optional<Time> ran_before_;
  Time next_look_ = kBetweenLooks;
  Time next_complaint_ = kStuck;

  static constexpr Time kBetweenLooks{100'000};
  static constexpr Time kStuck{3'000'000};
};

}  // namespace rnicsim::sim
