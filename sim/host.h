// A host of the simulated system: memory behind an IOMMU, a kernel, and its adapters.
#pragma once

#include <memory>
#include <vector>

#include "model/abi/attach.h"
#include "model/host/gids.h"
#include "model/host/host_kernel.h"
#include "model/host/iommu.h"
#include "sim/adapter.h"
#include "sim/config/config.h"

namespace rnicsim::sim {

class Host {
 public:
  Host(const Config& config, const abi::NetworkInterface& first, host::Neighbours fabric);
  // In the order of their numbers.
  Adapter& add(sc_core::sc_module_name name, const Config& config, std::size_t index,
               const nic::EngineFactory& make_engine);

  const char* name() const { return first_.name; }
  host::HostKernel& kernel() { return kernel_; }
  const std::vector<std::unique_ptr<Adapter>>& adapters() const { return adapters_; }

 private:
  const abi::NetworkInterface first_;
  host::Iommu iommu_;
  host::HostKernel kernel_;
  std::vector<std::unique_ptr<Adapter>> adapters_;
};

}  // namespace rnicsim::sim
