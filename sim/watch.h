// What may end a simulation from outside, whatever it is doing: signals and the wall clock.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "model/base/units.h"

namespace rnicsim::sim {

// As the command line says; nullopt: none.
struct Limits {
  std::optional<Duration> simulated;
  std::optional<Duration> wall;
};

// The exit status of a run that came to one of them: timeout(1) has the same.
inline constexpr int kLimitStatus = 124;

// One at a time. From its making on, SIGINT, SIGTERM and SIGUSR1 only leave a note, for who asks. A SIGINT or SIGTERM
// that comes a second or more after the first ends the process; one that comes earlier is the same wish.
class Watch {
 public:
  struct End {
    std::string why;
    int status;
  };

  explicit Watch(const Limits& limits);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Calls back ten times a second, between two alarms of the present simulation (Agenda::on_interrupt).
  void look_with(std::function<void()> look);
  // What the run is to end for.
  std::optional<End> end() const;
  // SIGUSR1 has come since it was last asked.
  bool report_wanted();
  const Limits& limits() const { return limits_; }
  std::chrono::duration<double> elapsed() const { return std::chrono::steady_clock::now() - start_; }

 private:
  const Limits limits_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// "ended at the limit of 10 s of simulated time"
Watch::End at_simulated_limit(Duration limit);

}  // namespace rnicsim::sim
