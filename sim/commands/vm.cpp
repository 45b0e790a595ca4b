// SPDX-License-Identifier: Apache-2.0
// rnicsim vm: runs commands in virtual machines with Linux.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/base/kernel.h"
#include "sim/attached/summary.h"
#include "sim/commands/command.h"
#include "sim/commands/simulation.h"
#include "sim/config/config_error.h"
#include "sim/config/loader.h"
#include "sim/guest/nic_function.h"
#include "sim/guest/vm/guest_run.h"
#include "sim/guest/vm/simulated_devices.h"
#include "sim/guest/vm/wire_socket.h"

namespace rnicsim::sim {
namespace {

struct VmCommand {
  GuestOptions options;
  RunOptions simulation;
  ObserverOptions observers;
  std::vector<std::string> devices;                     // "g0=SOCKET,qtest=SOCKET"
  std::optional<std::size_t> guests;                    // nullopt: as many as the topology has hosts
  std::vector<std::pair<std::string, std::string>> on;  // guests, command
  std::string wire;
  bool image_only = false;
};

constexpr std::size_t kMostGuests = 64;
constexpr char kPair[] = "back-to-back";

ByteCount memory_of(const std::string& text) {
  constexpr ByteCount kLeast{128u << 20}, kMost{64ull << 30};
  const auto size = parse_byte_count(text);
  if (!size)
    throw CLI::ValidationError(fmt::format("--memory: '{}' is not a size with its unit, such as 256MiB", text));
  if (*size < kLeast || *size > kMost)
    throw CLI::ValidationError(fmt::format("--memory: '{}' is not within 128 MiB and 64 GiB", text));
  return *size;
}

// Without --topology: a cable between two guests, a switch between more.
void complete_topology(VmCommand& command) {
  auto& topology = command.simulation.topology;
  if (topology.empty()) topology = command.guests.value_or(2) > 2 ? fmt::format("star:{}", *command.guests) : kPair;
}

// The first hosts of the topology are the guests.
std::set<std::uint32_t> first_hosts(VmCommand& command, const Topology& topology) {
  const std::size_t hosts = topology.interfaces.back().host + 1;
  auto& guests = command.options.guests;
  guests = command.guests.value_or(std::min(hosts, kMostGuests));
  if (guests > hosts) throw ConfigError(fmt::format("--guests {}: the topology has {} hosts", guests, hosts));
  std::set<std::uint32_t> found;
  for (std::uint32_t host = 0; host < guests; ++host) {
    refuse_second_nic(host, topology);
    found.insert(host);
  }
  return found;
}

// Example: "g0=SOCKET,qtest=SOCKET".
std::map<std::size_t, UserDevice> user_devices_of(const VmCommand& command) {
  constexpr char kQtest[] = ",qtest=";
  std::map<std::size_t, UserDevice> devices;
  for (const auto& word : command.devices) {
    const auto equals = word.find('='), comma = word.find(kQtest);
    if (equals == word.npos || comma == word.npos || comma < equals)
      throw ConfigError(fmt::format("--device: '{}' is not GUEST=SOCKET,qtest=SOCKET", shown(word)));
    const auto name = word.substr(0, equals);
    std::size_t guest = 0;
    while (guest < command.options.guests && name != fmt::format("g{}", guest)) ++guest;
    if (guest == command.options.guests)
      throw ConfigError(fmt::format("--device: there is no guest '{}'", shown(name)));
    const UserDevice device{word.substr(equals + 1, comma - equals - 1), word.substr(comma + std::size(kQtest) - 1)};
    if (!devices.emplace(guest, device).second)
      throw ConfigError(fmt::format("--device: {} has a device already", name));
  }
  return devices;
}

int run_guests_on_system(VmCommand& command) {
  auto& options = command.simulation;
  options.time = TimeMode::real;  // the virtual machines run in real time
  complete_topology(command);
  const Config config = configuration_of(options);
  const auto guests = first_hosts(command, config.topology);
  command.options.commands = guest_commands(command.on, command.options.guests);
  if (command.options.commands.empty())
    throw ConfigError("no guest has a command: give --on GUEST COMMAND, such as --on g0 'uname -r'");
  System system("system", config, options.seed, options.engine.fst, nullptr, guests);
  Observers observers(system, command.observers, trace_header(system, options));
  SimulatedDevices devices(system, guests.size(), user_devices_of(command),
                           command.wire.empty() ? Descriptor() : connect_to_wire(command.wire));
  const int status = run_guests(command.options, devices);
  RunOutcome outcome{now(), {}, {}, {}};
  if (observers.waterfall() != nullptr) outcome.waterfall = observers.waterfall()->summary();
  for (auto& storm : system.pause_storms()) outcome.warnings.push_back(std::move(storm));
  fmt::print("{}", summary_text(system, outcome));
  return observers.finish() ? status : std::max(status, 1);
}

int run_vm(VmCommand& command) {
  refuse_simulated_host("vm");
  try {
    if (!command.image_only) return run_guests_on_system(command);
    make_guest_image(command.options.image);
    return 0;
  } catch (const ImageFailed& failed) {
    return failed.status;
  }
}

void add_image_options(CLI::App& line, VmCommand& command) {
  ImageOptions& image = command.options.image;
  line.add_option("--add", image.add,
                  "add a file or folder to the guests: programs with their libraries, or kernel modules (.ko). WHERE: "
                  "path in the guests. May be repeated")
      ->allow_extra_args(false)
      ->type_name("PATH[=WHERE]");
  line.add_option("--with", image.with, "additional part of the image: python (with pyverbs); may be repeated")
      ->allow_extra_args(false)
      ->type_name("PART");
  line.add_option("--kernel", image.kernel,
                  "release of the guests' kernel, of Debian's packages (default: the current release)")
      ->type_name("RELEASE");
  line.add_option("--image", image.cache, "folder of the images (default: rnicsim/guest in the user's cache)")
      ->type_name("FOLDER");
  line.add_flag("--renew-image", image.renew, "make the image again from Debian's current packages");
  line.add_flag("--image-only", command.image_only, "make the image if it is missing, then end");
  line.add_option("--driver", image.driver,
                  "driver of the NICs: rnic (default), this project's driver (verbs/linux) with its provider for "
                  "libibverbs; or none, for your own driver (--add)")
      ->check(CLI::IsMember({"rnic", "none"}))
      ->type_name("rnic|none");
}

}  // namespace

Command add_vm(CLI::App& app) {
  CLI::App& line = *app.add_subcommand("vm", "run commands in virtual machines, on a Linux kernel: docs/vm.md");
  const auto command = std::make_shared<VmCommand>();
  GuestOptions& options = command->options;
  line.add_option("--on", command->on,
                  "run COMMAND in the shell of a guest or of several guests, such as 'g[0-1]'; may be repeated")
      ->allow_extra_args(false)
      ->type_name("GUEST COMMAND");
  line.add_option(
          "--guests", command->guests,
          "number of guests: g0, g1, ... replace the first hosts of the topology (default: all hosts of --topology; "
          "without --topology 2)")
      ->check(CLI::Range(std::size_t{1}, kMostGuests));
  line.add_option(
          "--device", command->devices,
          "replace the guest's NIC by your own device: QEMU's x-pci-proxy-dev connects to the first socket, and QEMU "
          "listens for interrupts at the second socket; may be repeated")
      ->allow_extra_args(false)
      ->type_name("GUEST=SOCKET,qtest=SOCKET");
  const auto set_memory = [&options](const std::string& text) { options.memory = memory_of(text); };
  line.add_option_function<std::string>("--memory", set_memory, "memory of each guest (default: 256MiB)")
      ->type_name("SIZE");
  line.add_option(
          "--wire", command->wire,
          "connect the guests' Ethernet to a socket at which another program listens, such as rnicsim run --wire "
          "h1=unix:PATH; docs/live-wire.md")
      ->type_name("unix:PATH");
  add_image_options(line, *command);
  command->simulation.topology.clear();
  add_configuration(line, command->simulation);
  add_observers(line, command->observers);
  add_engine(line, command->simulation.engine);
  add_seed(line, command->simulation.seed, "seed of all random choices")->capture_default_str();
  line.add_option("--kernel-words", options.kernel_words,
                  "additional parameters of the guests' kernel, such as 'dyndbg=...'")
      ->type_name("WORDS");
  line.add_option("--consoles", options.consoles,
                  "write the output of the guests' consoles to this folder: g0.console, ...")
      ->type_name("FOLDER");
  const auto add_time = [&line](const char* name, Duration& time, const char* meaning) {
    const auto set = [=, &time](const std::string& text) { time = time_of(name, text); };
    line.add_option_function<std::string>(name, set, meaning)->type_name("TIME");
  };
  add_time("--boot-limit", options.boot_limit, "longest real time of a boot (default: 300s)");
  add_time("--gap", options.most_gap,
           "longest delay of a command: a command starts when the command before it waits or has ended, or after this "
           "time (default: 10s)");
  const auto set_limit = [&options](const std::string& text) { options.limits.wall = time_of("--wall-limit", text); };
  line.add_option_function<std::string>("--wall-limit", set_limit, "end after this real time; exit status 124")
      ->type_name("TIME");
  line.footer(
      "The exit status is the worst status of the commands (128 + signal for a killed command); 1 if a guest does not "
      "boot "
      "or stops, its kernel reports a fault, a counter disagrees with the trace, or --check has a finding; 2 if the "
      "run "
      "cannot start; 3 if --engine lockstep finds a difference; 124 at the limit; 128 + signal if a signal ended the "
      "run.");
  return {&line, [command] { return run_vm(*command); }};
}

}  // namespace rnicsim::sim
