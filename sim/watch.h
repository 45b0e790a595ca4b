// SPDX-License-Identifier: Apache-2.0
// Ends a simulation from outside: by signals and wall-clock limits.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "model/base/units.h"

namespace rnicsim::sim {

// Limits of the command line; nullopt: no limit.
struct Limits {
  std::optional<Duration> simulated;
  std::optional<Duration> wall;
};

// Exit status of a run that reached a limit: the same as timeout(1).
inline constexpr int kLimitStatus = 124;

// At most one object at a time. While it exists, SIGINT, SIGTERM and SIGUSR1 only set a flag that the run checks. A
// second SIGINT or SIGTERM ends the process when it comes at least one second after the first; an earlier one counts as
// the same request.
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

  // Calls `look` ten times a second, between two alarms of the present simulation (Agenda::on_interrupt).
  void look_with(std::function<void()> look);
  // Reason and exit status when the run shall end; nullopt: continue.
  std::optional<End> end() const;
  // True: SIGUSR1 has come since the last call.
  bool report_wanted();
  const Limits& limits() const { return limits_; }
  std::chrono::duration<double> elapsed() const { return std::chrono::steady_clock::now() - start_; }

 private:
  const Limits limits_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Reason and status of such an end: "ended at the limit of 10 s of simulated time".
Watch::End at_simulated_limit(Duration limit);

}  // namespace rnicsim::sim
