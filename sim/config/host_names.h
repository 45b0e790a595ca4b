// SPDX-License-Identifier: Apache-2.0
// Expands host names and ranges of host names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/config/topology.h"

namespace rnicsim::sim {

// "h2" gives one name, "h[0-3]" four. ConfigError: the text is no valid range.
std::vector<std::string> expand_names(const std::string& text);

// Numbers of the hosts of "h2" or "h[0-3]", in the topology's order. ConfigError: no such host, or no valid range.
std::vector<std::uint32_t> expand_hosts(const std::string& text, const Topology& topology);

}  // namespace rnicsim::sim
