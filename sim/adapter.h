// A NIC in its host: its root port, and the kernel's agent for it. A cable ends at each.
#pragma once

#include <cstdint>
#include <string>

#include "model/abi/attach.h"
#include "model/base/kernel.h"
#include "model/fabric/fault_injector.h"
#include "model/host/host_kernel.h"
#include "model/host/iommu.h"
#include "model/host/kernel_agent.h"
#include "model/host/root_complex.h"
#include "model/nic/nic.h"
#include "sim/config/config.h"

namespace rnicsim::sim {

struct AdapterCounters {
  nic::NicCounters nic;
  host::RootComplexCounters root_complex;
  host::IommuCounters iommu;
  host::KernelCounters kernel;
  fabric::FaultCounters link;

  void describe(CounterVisitor& visit) const {
    visit.group("nic", nic);
    visit.group("root_complex", root_complex);
    visit.group("iommu", iommu);
    visit.group("kernel", kernel);
    visit.group("link", link);
  }
};

class Adapter : public sc_core::sc_module {
 public:
  // `index`: of the interface, in the topology.
  Adapter(sc_core::sc_module_name name, const Config& config, std::size_t index, host::Iommu& iommu,
          host::HostKernel& kernel, const nic::EngineFactory& make_engine);

  const abi::NetworkInterface& interface() const { return interface_; }
  std::uint32_t device() const { return interface_.device; }  // of its host
  const std::string& label() const { return label_; }         // "h0"; of a host's second one "h0:1"
  host::HostKernel& kernel() { return agent_.kernel(); }
  host::KernelAgent& agent() { return agent_; }
  host::RootComplex& root_complex() { return root_complex_; }
  host::Iommu& iommu() { return root_complex_.iommu(); }
  nic::Nic& nic() { return nic_; }
  const nic::Nic& nic() const { return nic_; }

  // Those of its cable are with the system, which has the cables.
  AdapterCounters counters() const;

 private:
  const abi::NetworkInterface interface_;
  const std::string label_;
  host::RootComplex root_complex_;
  nic::Nic nic_;
  host::KernelAgent agent_;
};

}  // namespace rnicsim::sim
