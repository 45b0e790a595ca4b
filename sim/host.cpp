#include "sim/host.h"

#include "model/host/gids.h"

namespace rnicsim::sim {
namespace {

nic::NicParams with_address(nic::NicParams params, const host::Mac& mac) {
  params.capabilities.mac = 0;
  for (const std::uint8_t byte : mac) params.capabilities.mac = params.capabilities.mac << 8 | byte;
  return params;
}

}  // namespace

Host::Host(sc_core::sc_module_name name, const Config& config, std::uint32_t index,
           const nic::EngineFactory& make_engine)
    : sc_module(name),
      entry_(config.topology.hosts[index]),
      iommu_(entry_.name),
      root_complex_("root_complex", config.host, iommu_),
      nic_("nic", with_address(config.nic, host::mac_of(entry_)), make_engine),
      kernel_("kernel", config.host, root_complex_, entry_, config.topology.hosts) {
  root_complex_.bar.bind(nic_.bar());
  root_complex_.config.bind(nic_.config());
  nic_.dma().bind(root_complex_.upstream);
}

HostCounters Host::counters() const {
  return {nic_.counters(), root_complex_.counters(), iommu_.counters(), kernel_.counters(), {}};
}

}  // namespace rnicsim::sim
