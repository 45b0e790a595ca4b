// SPDX-License-Identifier: Apache-2.0
// rnicsim device: NICs for virtual machines.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "model/base/kernel.h"
#include "sim/attached/summary.h"
#include "sim/commands/command.h"
#include "sim/commands/simulation.h"
#include "sim/config/config_error.h"
#include "sim/config/loader.h"
#include "sim/config/param_list.h"
#include "sim/guest/device_server.h"
#include "sim/guest/nic_function.h"

namespace rnicsim::sim {
namespace {

struct DeviceCommand {
  RunOptions options;
  ObserverOptions observers;
  std::vector<std::string> qemu, vfio_user, qtest;  // "h0=SOCKET"
  bool once = false;
};

using Sockets = std::vector<std::pair<std::uint32_t, std::string>>;  // host, path

// Example: "h0=PATH,h1=PATH".
Sockets sockets_of(const char* option, const std::vector<std::string>& words, const Topology& topology) {
  Sockets found;
  for (const auto& word : words)
    for (const auto& one : CLI::detail::split(word, ',')) {
      const auto equals = one.find('=');
      if (equals == one.npos) throw ConfigError(fmt::format("{}: '{}' is not HOST=SOCKET", option, shown(one)));
      const auto name = one.substr(0, equals);
      const auto host = std::ranges::find_if(topology.interfaces, [&](const auto& any) { return any.name == name; });
      if (host == topology.interfaces.end())
        throw ConfigError(fmt::format("{}: the topology has no host '{}'", option, shown(name)));
      found.emplace_back(host->host, one.substr(equals + 1));
    }
  return found;
}

std::vector<ServedHost> guests_of(const DeviceCommand& command, const Topology& topology) {
  std::vector<ServedHost> guests;
  const auto add = [&](const char* option, const std::vector<std::string>& words, GuestProtocol protocol) {
    for (auto& [host, path] : sockets_of(option, words, topology)) {
      if (std::ranges::find(guests, host, &ServedHost::host) != guests.end())
        throw ConfigError(fmt::format("{}: {} has a socket already", option, topology.interfaces[host].name));
      refuse_second_nic(host, topology);
      guests.push_back({host, {protocol, path, {}}});
    }
  };
  add("--qemu", command.qemu, GuestProtocol::qemu);
  add("--vfio-user", command.vfio_user, GuestProtocol::vfio_user);
  if (guests.empty())
    throw ConfigError("no virtual machine has a socket: give --qemu HOST=SOCKET or --vfio-user HOST=SOCKET");
  for (auto& [host, path] : sockets_of("--qtest", command.qtest, topology)) {
    const auto guest = std::ranges::find(guests, host, &ServedHost::host);
    if (guest == guests.end() || guest->socket.protocol != GuestProtocol::qemu)
      throw ConfigError(fmt::format("--qtest: {} has no --qemu socket", topology.interfaces[host].name));
    guest->socket.qtest_path = path;
  }
  return guests;
}

int serve_devices(DeviceCommand& command) {
  auto& options = command.options;
  options.time = TimeMode::real;  // the virtual machines run in real time
  const Config config = configuration_of(options);
  const auto guests = guests_of(command, config.topology);
  std::set<std::uint32_t> hosts;
  for (const auto& guest : guests) hosts.insert(guest.host);
  System system("system", config, options.seed, options.engine.fst, nullptr, hosts);
  Observers observers(system, command.observers, trace_header(system, options));
  DeviceServer server(system, guests, options.limits, command.once);
  const int status = server.serve();
  RunOutcome outcome{now(), {}, server.warnings(), {}};
  if (observers.waterfall() != nullptr) outcome.waterfall = observers.waterfall()->summary();
  for (auto& storm : system.pause_storms()) outcome.warnings.push_back(std::move(storm));
  fmt::print("{}", summary_text(system, outcome));
  return observers.finish() ? status : std::max(status, 1);
}

}  // namespace

Command add_device(CLI::App& app) {
  CLI::App& line =
      *app.add_subcommand("device", "give the NICs of simulated hosts to virtual machines: docs/bring-up.md");
  const auto command = std::make_shared<DeviceCommand>();
  const auto add_sockets = [&](const char* name, std::vector<std::string>& words, const char* meaning) {
    line.add_option(name, words, meaning)->allow_extra_args(false)->type_name("HOST=SOCKET[,HOST=SOCKET]...");
  };
  add_sockets(
      "--qemu", command->qemu,
      "listen at this path for the virtual machine that replaces the host, with x-pci-proxy-dev of QEMU 7.2; may be "
      "repeated");
  add_sockets("--qtest", command->qtest,
              "path at which QEMU listens for interrupts: -qtest unix:SOCKET,server=on,wait=off");
  add_sockets("--vfio-user", command->vfio_user,
              "as --qemu, with the vfio-user protocol: QEMU 10.1 or later, and others");
  line.add_flag("--once", command->once, "end after all connected virtual machines have disconnected");
  add_configuration(line, command->options);
  add_observers(line, command->observers);
  add_engine(line, command->options.engine);
  add_seed(line, command->options.seed, "seed of all random choices")->capture_default_str();
  add_limits(line, command->options.limits);
  line.footer(
      "The command runs until SIGINT or SIGTERM, and then prints the NICs' counters. The exit status is 0; 1 if a "
      "counter "
      "disagrees with the trace; 2 if the run cannot start; 3 if --engine lockstep finds a difference; 124 at a "
      "limit.");
  return {&line, [command] { return serve_devices(*command); }};
}

}  // namespace rnicsim::sim
