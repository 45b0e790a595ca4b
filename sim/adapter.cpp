#include "sim/adapter.h"

#include "model/host/gids.h"
#include "sim/config/topology.h"

namespace rnicsim::sim {
namespace {

nic::NicParams with_address(nic::NicParams params, const host::Mac& mac) {
  params.capabilities.mac = 0;
  for (const std::uint8_t byte : mac) params.capabilities.mac = params.capabilities.mac << 8 | byte;
  return params;
}

}  // namespace

Adapter::Adapter(sc_core::sc_module_name name, const Config& config, std::size_t index, host::Iommu& iommu,
                 host::HostKernel& kernel, const nic::EngineFactory& make_engine)
    : sc_module(name),
      interface_(config.topology.interfaces[index]),
      label_(label_of(interface_)),
      root_complex_("root_complex", config.host_of(interface_.host), iommu, interface_.device),
      nic_("nic", with_address(config.nic_of(index), host::mac_of(interface_)), make_engine),
      agent_("kernel", config.host_of(interface_.host), kernel, root_complex_, interface_) {
  root_complex_.bar.bind(nic_.bar());
  root_complex_.config.bind(nic_.config());
  nic_.dma().bind(root_complex_.upstream);
  nic_.pcie.reach(root_complex_);
  root_complex_.reach(nic_.pcie);
}

AdapterCounters Adapter::counters() const {
  return {nic_.counters(), root_complex_.counters(), root_complex_.iommu_counters(), agent_.counters(), {}};
}

}  // namespace rnicsim::sim
