// `rnicsim top`: what a run of this user's does, while it does it.
#pragma once

#include <sys/types.h>

#include <optional>

#include "model/base/units.h"

namespace rnicsim::sim::top {

struct TopOptions {
  std::optional<pid_t> pid;           // of the run; nullopt: the only one
  Duration delay{1'000'000'000'000};  // between two looks, in real time
  bool once = false;                  // as text
  bool json = false;                  // likewise
};

// The exit status: 0, or 1 for a run that does not answer. ConfigError: no such run, several, or no terminal for it.
int run_top(const TopOptions& options);

}  // namespace rnicsim::sim::top
