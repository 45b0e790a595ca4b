// SPDX-License-Identifier: Apache-2.0
// Warnings about service levels of flows without effect, one sentence for each flow: packets without a VLAN tag have no
// PCP.
#pragma once

#include <string>
#include <vector>

namespace rnicsim::sim {
struct Config;
}  // namespace rnicsim::sim

namespace rnicsim::sim::bench {

struct Workload;

std::vector<std::string> service_level_warnings(const Workload& workload, const Config& config);

}  // namespace rnicsim::sim::bench
