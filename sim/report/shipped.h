// How a configuration differs from the NIC profile and the topology that it began with.
#pragma once

#include <map>
#include <string>

#include "sim/results/json.h"

namespace rnicsim::sim::report {

// {"nic", "topology", "differs": {key: the profile's value}}, or {"unknown": why}, when this program ships no such
// profile or topology.
Json shipped_json(const std::string& nic, const std::string& host, const std::string& topology,
                                    const std::map<std::string, std::string>& configuration);

}  // namespace rnicsim::sim::report
