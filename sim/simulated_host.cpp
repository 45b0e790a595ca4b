// SPDX-License-Identifier: Apache-2.0
#include "sim/simulated_host.h"

#include "model/host/gids.h"
#include "model/host/host_kernel.h"
#include "model/host/memory/iommu.h"
#include "sim/config/config.h"

namespace rnicsim::sim {

Host::Host(const Config& config, const abi::NetworkInterface& first, const host::Neighbours& fabric)
    : first_(first),
      iommu_(std::make_unique<host::Iommu>(first.name)),
      kernel_(std::make_unique<host::HostKernel>(config.host_of(first.host), *iommu_, fabric)) {}

Host::Host(const abi::NetworkInterface& first) : first_(first) {}

Host::~Host() = default;

Adapter& Host::add(sc_core::sc_module_name name, const Config& config, std::size_t index,
                   const nic::EngineFactory& make_engine) {
  if (is_guest()) return *adapters_.emplace_back(std::make_unique<Adapter>(name, config, index, make_engine));
  return *adapters_.emplace_back(std::make_unique<Adapter>(name, config, index, *iommu_, *kernel_, make_engine));
}

}  // namespace rnicsim::sim
