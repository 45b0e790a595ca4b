// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/attached_hosts.h"

namespace rnicsim::sim {

std::optional<std::uint32_t> AttachedHosts::named(const std::string& name) const {
  for (std::uint32_t index = 0; index < hosts_.size(); ++index)
    if (name == hosts_[index].name) return index;
  return std::nullopt;
}

host::KernelAgent* AttachedHosts::agent_of(const Process& process, std::uint32_t device) const {
  const auto& agents = of(process).agents;
  return device < agents.size() ? agents[device] : nullptr;
}

}  // namespace rnicsim::sim
