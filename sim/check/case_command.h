// SPDX-License-Identifier: Apache-2.0
// The command line of a case's run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/check/case.h"
#include "sim/check/verdict.h"

namespace rnicsim::sim::check {

// `records`: write a trace and results, if the kind of run can, even when the case does not need them.
std::vector<std::string> command_of(const Case& of, const std::optional<std::uint64_t>& seed, const RunFiles& files,
                                    bool records);

}  // namespace rnicsim::sim::check
