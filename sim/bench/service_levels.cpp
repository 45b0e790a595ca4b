// SPDX-License-Identifier: Apache-2.0
#include "sim/bench/service_levels.h"

#include <fmt/format.h>

#include <set>

#include "sim/bench/workload.h"
#include "sim/config/config.h"

namespace rnicsim::sim::bench {
namespace {

// Hosts of the flow whose NICs' GIDs have no VLAN.
std::set<std::string> hosts_without_vlan(const Flow& flow, const Config& config) {
  std::set<std::string> hosts;
  for (const auto* names : {&flow.from, &flow.to})
    for (const auto& name : *names)
      if (const auto interface = config.topology.find(name))
        if (config.host_of(config.topology.interfaces[*interface].host).vlan == 0) hosts.insert(name);
  return hosts;
}

}  // namespace

std::vector<std::string> service_level_warnings(const Workload& workload, const Config& config) {
  std::vector<std::string> warnings;
  for (std::size_t i = 0; i < workload.flows.size(); ++i) {
    const auto& flow = workload.flows[i];
    if (flow.sl == 0) continue;
    const auto hosts = hosts_without_vlan(flow, config);
    if (hosts.empty()) continue;
    const auto more = hosts.size() == 1 ? std::string() : fmt::format(" and {} more", hosts.size() - 1);
    warnings.push_back(
        fmt::format("{}: flow[{}].sl has no effect on packets of {}{}, because host.vlan is 0: no VLAN tag",
                    workload.file, i, *hosts.begin(), more));
  }
  return warnings;
}

}  // namespace rnicsim::sim::bench
