// SPDX-License-Identifier: Apache-2.0
// A host of the simulated system: memory behind an IOMMU, a kernel, and its adapters. A guest (a virtual machine) has
// its memory and its kernel outside the simulation.
#pragma once

#include <memory>
#include <vector>

#include "model/abi/attach.h"
#include "sim/adapter.h"

namespace rnicsim::host {
class Neighbours;
}

namespace rnicsim::sim {

class Host {
 public:
  Host(const Config& config, const abi::NetworkInterface& first, const host::Neighbours& fabric);
  // Makes a guest.
  explicit Host(const abi::NetworkInterface& first);
  ~Host();
  // Add adapters in the order of their device numbers.
  Adapter& add(sc_core::sc_module_name name, const Config& config, std::size_t index,
               const nic::EngineFactory& make_engine);

  const char* name() const { return first_.name; }
  bool is_guest() const { return kernel_ == nullptr; }
  host::HostKernel& kernel() { return *kernel_; }
  const std::vector<std::unique_ptr<Adapter>>& adapters() const { return adapters_; }

 private:
  const abi::NetworkInterface first_;
  const std::unique_ptr<host::Iommu> iommu_;
  const std::unique_ptr<host::HostKernel> kernel_;
  std::vector<std::unique_ptr<Adapter>> adapters_;
};

}  // namespace rnicsim::sim
