// A host of the simulated system: memory behind an IOMMU, root complex, kernel, NIC.
#pragma once

#include <vector>

#include "model/abi/attach.h"
#include "model/base/kernel.h"
#include "model/fabric/fault_injector.h"
#include "model/host/iommu.h"
#include "model/host/kernel_agent.h"
#include "model/host/root_complex.h"
#include "model/nic/nic.h"
#include "sim/config/config.h"

namespace rnicsim::sim {

struct HostCounters {
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

class Host : public sc_core::sc_module {
 public:
  Host(sc_core::sc_module_name name, const Config& config, std::uint32_t index, const nic::EngineFactory& make_engine);

  const abi::HostEntry& entry() const { return entry_; }
  host::KernelAgent& kernel() { return kernel_; }
  host::RootComplex& root_complex() { return root_complex_; }
  nic::Nic& nic() { return nic_; }
  host::Iommu& iommu() { return iommu_; }

  // Those of its cable are with the system, which has the cables.
  HostCounters counters() const;

 private:
  const abi::HostEntry entry_;
  host::Iommu iommu_;
  host::RootComplex root_complex_;
  nic::Nic nic_;
  host::KernelAgent kernel_;
};

}  // namespace rnicsim::sim
