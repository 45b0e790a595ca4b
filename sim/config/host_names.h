// Hosts as a person names them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/config/topology.h"

namespace rnicsim::sim {

// "h2" as it is, "h[0-3]" as four names. ConfigError: not a range.
std::vector<std::string> expand_names(const std::string& text);

// "h2", or "h[0-3]" for several; in the topology's order of numbers. ConfigError: no such host, or not a range.
std::vector<std::uint32_t> expand_hosts(const std::string& text, const Topology& topology);

}  // namespace rnicsim::sim
