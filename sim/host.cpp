#include "sim/host.h"

namespace rnicsim::sim {

Host::Host(const Config& config, const abi::NetworkInterface& first)
    : first_(first), iommu_(first.name), kernel_(config.host, iommu_, host::Neighbours(config.topology.interfaces)) {}

Adapter& Host::add(sc_core::sc_module_name name, const Config& config, const abi::NetworkInterface& interface,
                   const nic::EngineFactory& make_engine) {
  return *adapters_.emplace_back(std::make_unique<Adapter>(name, config, interface, iommu_, kernel_, make_engine));
}

}  // namespace rnicsim::sim
