// SPDX-License-Identifier: Apache-2.0
// Warnings about congestion controls whose parameters are for shorter round trips than those of the fabric, one
// sentence each: a queue pair then cannot use the whole line, even if the fabric is empty.
#pragma once

#include <string>
#include <vector>

namespace rnicsim::sim {

struct Config;

std::vector<std::string> round_trip_warnings(const Config& config);

}  // namespace rnicsim::sim
