// SPDX-License-Identifier: Apache-2.0
#include "sim/adapter.h"

#include "model/host/gids.h"
#include "model/host/host_kernel.h"
#include "model/host/kernel_agent.h"
#include "model/host/memory/iommu.h"
#include "model/host/root_complex.h"
#include "model/nic/nic.h"
#include "model/nic/pcie/pcie_endpoint.h"
#include "sim/adapter_counters.h"
#include "sim/config/config.h"
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
      root_complex_(std::make_unique<host::RootComplex>("root_complex", config.host_of(interface_.host), iommu,
                                                        interface_.device)),
      nic_(
          std::make_unique<nic::Nic>("nic", with_address(config.nic_of(index), host::mac_of(interface_)), make_engine)),
      agent_(std::make_unique<host::KernelAgent>("kernel", config.host_of(interface_.host), kernel, *root_complex_,
                                                 interface_)) {
  root_complex_->bar.bind(nic_->bar());
  root_complex_->config.bind(nic_->config());
  nic_->dma().bind(root_complex_->upstream);
  nic_->blocks().pcie.reach(*root_complex_);
  root_complex_->reach(nic_->blocks().pcie);
}

Adapter::Adapter(sc_core::sc_module_name name, const Config& config, std::size_t index,
                 const nic::EngineFactory& make_engine)
    : sc_module(name),
      interface_(config.topology.interfaces[index]),
      label_(label_of(interface_)),
      nic_(std::make_unique<nic::Nic>("nic", with_address(config.nic_of(index), host::mac_of(interface_)),
                                      make_engine)) {}

Adapter::~Adapter() = default;

host::HostKernel& Adapter::kernel() { return agent_->kernel(); }

host::Iommu& Adapter::iommu() { return root_complex_->iommu(); }

AdapterCounters Adapter::counters() const {
  if (in_guest()) return {.nic = nic_->counters(), .root_complex = {}, .iommu = {}, .kernel = {}, .link = {}};
  return {nic_->counters(), root_complex_->counters(), root_complex_->iommu_counters(), agent_->counters(), {}};
}

}  // namespace rnicsim::sim
