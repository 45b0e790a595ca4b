// SPDX-License-Identifier: Apache-2.0
// `rnicsim check FOLDER --bisect GOOD..BAD`: finds the first commit of a Git repository at which a case fails.
#pragma once

#include "sim/check/check.h"

namespace rnicsim::sim::check {

// Returns 0: the first bad commit is found; 1: skipped commits leave several candidates; 128 + signal: interrupted.
// ConfigError: no repository, GOOD is not good, BAD is not bad.
int run_bisect(const CheckOptions& options);

}  // namespace rnicsim::sim::check
