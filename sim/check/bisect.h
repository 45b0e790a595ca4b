// `rnicsim check FOLDER --bisect GOOD..BAD`: the first commit of a Git repository at which a case fails.
#pragma once

#include "sim/check/check.h"

namespace rnicsim::sim::check {

// 0: one commit is the first bad one; 1: commits that cannot be judged leave several; 128 + signal: interrupted.
// ConfigError: no repository, GOOD is not good, BAD is not bad.
int run_bisect(const CheckOptions& options);

}  // namespace rnicsim::sim::check
