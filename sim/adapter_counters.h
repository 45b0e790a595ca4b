// SPDX-License-Identifier: Apache-2.0
// Counters of a NIC, of its host and of the cable at the NIC.
#pragma once

#include "model/base/stats.h"
#include "model/fabric/fault_counters.h"
#include "model/host/host_counters.h"
#include "model/nic/nic_counters.h"

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

}  // namespace rnicsim::sim
