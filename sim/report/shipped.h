// SPDX-License-Identifier: Apache-2.0
// Difference of a configuration from its shipped NIC profile and topology.
#pragma once

#include <map>
#include <string>

#include "sim/results/json.h"

namespace rnicsim::sim::report {

// {"nic", "topology", "differs": {key: the profile's value}}; or {"unknown": reason} when this program does not ship
// the profile or topology.
Json shipped_json(const std::string& nic, const std::string& host, const std::string& topology,
                  const std::map<std::string, std::string>& configuration);

}  // namespace rnicsim::sim::report
