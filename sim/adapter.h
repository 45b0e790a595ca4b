// SPDX-License-Identifier: Apache-2.0
// A NIC in its host, with its root port and the kernel agent that drives it. A NIC of a guest (a virtual machine) has
// neither root port nor agent: the code that serves the guest binds the NIC's sockets (sim/guest).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <systemc>

#include "model/abi/attach.h"
#include "model/nic/engine/engine_factory.h"

namespace rnicsim::host {
class HostKernel;
class Iommu;
class KernelAgent;
class RootComplex;
}  // namespace rnicsim::host

namespace rnicsim::nic {
class Nic;
}

namespace rnicsim::sim {

struct AdapterCounters;
struct Config;

class Adapter : public sc_core::sc_module {
 public:
  // `index`: position of the interface in the topology's list.
  Adapter(sc_core::sc_module_name name, const Config& config, std::size_t index, host::Iommu& iommu,
          host::HostKernel& kernel, const nic::EngineFactory& make_engine);
  // An adapter of a guest: the kernel runs in a virtual machine, so the adapter has no kernel agent and no root
  // complex.
  Adapter(sc_core::sc_module_name name, const Config& config, std::size_t index, const nic::EngineFactory& make_engine);
  ~Adapter() override;

  const abi::NetworkInterface& interface() const { return interface_; }
  std::uint32_t device() const { return interface_.device; }  // number of the device in its host
  const std::string& label() const { return label_; }         // "h0"; the second adapter of h0 is "h0:1"
  bool in_guest() const { return agent_ == nullptr; }
  // --- The next four functions must not be called for an adapter of a guest.
  host::HostKernel& kernel();
  host::KernelAgent& agent() { return *agent_; }
  host::RootComplex& root_complex() { return *root_complex_; }
  host::Iommu& iommu();

  nic::Nic& nic() { return *nic_; }
  const nic::Nic& nic() const { return *nic_; }
  // The counters of the adapter's cable are 0 here; System::counters adds them.
  AdapterCounters counters() const;

 private:
  const abi::NetworkInterface interface_;
  const std::string label_;
  const std::unique_ptr<host::RootComplex> root_complex_;
  const std::unique_ptr<nic::Nic> nic_;
  const std::unique_ptr<host::KernelAgent> agent_;
};

}  // namespace rnicsim::sim
