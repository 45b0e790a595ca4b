#include "sim/host.h"

#include <utility>

namespace rnicsim::sim {

Host::Host(const Config& config, const abi::NetworkInterface& first, host::Neighbours fabric)
    : first_(first), iommu_(first.name), kernel_(config.host_of(first.host), iommu_, std::move(fabric)) {}

Adapter& Host::add(sc_core::sc_module_name name, const Config& config, std::size_t index,
                   const nic::EngineFactory& make_engine) {
  return *adapters_.emplace_back(std::make_unique<Adapter>(name, config, index, iommu_, kernel_, make_engine));
}

}  // namespace rnicsim::sim
