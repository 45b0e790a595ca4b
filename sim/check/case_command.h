// The command line of a case's run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/check/case.h"
#include "sim/check/verdict.h"

namespace rnicsim::sim::check {

// `records`: trace and results are written even if the case does not need them, where its run can.
std::vector<std::string> command_of(const Case& of, const std::optional<std::uint64_t>& seed, const RunFiles& files,
                                    bool records);

}  // namespace rnicsim::sim::check
