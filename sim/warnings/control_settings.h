// SPDX-License-Identifier: Apache-2.0
// Warnings about a congestion control that cannot slow down any sender, one sentence each: the configuration gives the
// control none of the inputs (CNPs, marks, telemetry) that it needs.
#pragma once

#include <string>
#include <vector>

namespace rnicsim::sim {

struct Config;

std::vector<std::string> control_warnings(const Config& config);

}  // namespace rnicsim::sim
