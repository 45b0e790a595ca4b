// SPDX-License-Identifier: Apache-2.0
// `rnicsim top`: shows the activity of a run of this user while it goes on.
#pragma once

#include <sys/types.h>

#include <optional>

#include "model/base/units.h"

namespace rnicsim::sim::top {

struct TopOptions {
  std::optional<pid_t> pid;           // nullopt: the only run
  Duration delay{1'000'000'000'000};  // wall time between two snapshots
  bool once = false;                  // print once as text
  bool json = false;                  // print once as JSON
};

// Returns the exit status: 0, or 1 if the run does not answer. ConfigError: no such run, several runs, or no terminal.
int run_top(const TopOptions& options);

}  // namespace rnicsim::sim::top
