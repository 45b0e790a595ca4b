// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/nic_function.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "model/abi/device.h"
#include "model/base/kernel.h"
#include "model/nic/nic.h"
#include "model/nic/pcie/pcie_endpoint.h"
#include "sim/adapter.h"
#include "sim/config/config_error.h"
#include "sim/config/topology.h"
#include "sim/engine_choice.h"
#include "sim/os/progress_line.h"
#include "sim/simulated_host.h"
#include "sim/system.h"

namespace rnicsim::sim {

Adapter& guest_adapter(System& system, std::uint32_t host) { return *system.host(host).adapters().front(); }

void refuse_second_nic(std::uint32_t host, const Topology& topology) {
  if (std::ranges::count(topology.interfaces, host, &abi::NetworkInterface::host) > 1)
    throw ConfigError(
        fmt::format("{} has several NICs, but a guest can have only one", topology.interfaces[host].name));
}

GuestFunction nic_function(Adapter& adapter) {
  auto& nic = adapter.nic();
  return {adapter.label(), nic.config(), nic.bar(), nic.dma(), abi::kBarSize, abi::config::kSize};
}

void connect_to_guest(Adapter& adapter, GuestPort& port) {
  adapter.nic().blocks().pcie.reach(port.host_memory());
  port.say = [](const std::string& line) {
    progress_line::erase();
    fmt::print(stderr, "rnicsim: {}\n", line);
  };
}

std::string nic_states(System& system, const std::set<std::uint32_t>& hosts) {
  std::string text;
  for (const auto host : hosts) guest_adapter(system, host).nic().describe_state(text);
  return text;
}

bool has_stopped(System& system) {
  return !system.engines().mismatch().empty() || sc_core::sc_get_status() == sc_core::SC_STOPPED;
}

void start_beside_guests(System& system) {
  sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
  system.start();
}

}  // namespace rnicsim::sim
