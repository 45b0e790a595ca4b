// SPDX-License-Identifier: Apache-2.0
// Services of the simulated hosts for attached processes: kernel, kernel agents of the devices, parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/host/host_kernel.h"
#include "model/host/host_params.h"
#include "model/host/kernel_agent.h"
#include "sim/attached/processes/process.h"

namespace rnicsim::sim {

struct HostServices {
  std::string name;
  host::HostKernel* kernel = nullptr;
  std::vector<host::KernelAgent*> agents{};  // one for each device of the host
  const host::HostParams* params = nullptr;
  // Earliest time at which a device of the host may write to host memory, if no event happens in the devices before
  // `next`.
  std::function<Duration(Duration next)> quiet_until{};
};

class AttachedHosts {
 public:
  explicit AttachedHosts(std::vector<HostServices> hosts) : hosts_(std::move(hosts)) {}

  const std::vector<HostServices>& all() const { return hosts_; }
  const HostServices& operator[](std::uint32_t host) const { return hosts_[host]; }
  const HostServices& of(const Process& process) const { return hosts_[process.identity().host]; }
  std::optional<std::uint32_t> named(const std::string& name) const;
  // nullptr: the host has no such device.
  host::KernelAgent* agent_of(const Process& process, std::uint32_t device) const;

 private:
  const std::vector<HostServices> hosts_;
};

}  // namespace rnicsim::sim
