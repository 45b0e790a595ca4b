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
      throw ConfigError(fmt::format("--device: no guest is called '{}'", shown(name)));
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
                  "a file or folder of yours for the guests: programs with their libraries, modules (.ko) among the "
                  "kernel's; WHERE: its path there; may be repeated")
      ->allow_extra_args(false)
      ->type_name("PATH[=WHERE]");
  line.add_option("--with", image.with, "what else the image is to have: python (with pyverbs); may be repeated")
      ->allow_extra_args(false)
      ->type_name("PART");
  line.add_option("--kernel", image.kernel, "the guests' kernel, a release that Debian has (default: its present one)")
      ->type_name("RELEASE");
  line.add_option("--image", image.cache, "where images are kept (default: rnicsim/guest in the user's cache)")
      ->type_name("FOLDER");
  line.add_flag("--renew-image", image.renew, "make the image anew, of the packages that Debian has now");
  line.add_flag("--image-only", command.image_only, "make the image, where it is not there, and end");
  line.add_option("--driver", image.driver,
                  "the driver of the NICs: rnic (default), verbs/linux of this project with its provider for "
                  "libibverbs; or none, for one of yours (--add)")
      ->check(CLI::IsMember({"rnic", "none"}))
      ->type_name("rnic|none");
}

}  // namespace

Command add_vm(CLI::App& app) {
  CLI::App& line = *app.add_subcommand("vm", "run commands in virtual machines, on a Linux kernel: docs/vm.md");
  const auto command = std::make_shared<VmCommand>();
  GuestOptions& options = command->options;
  line.add_option("--on", command->on,
                  "let the shell of a guest execute COMMAND; of several: 'g[0-1]'; may be repeated")
      ->allow_extra_args(false)
      ->type_name("GUEST COMMAND");
  line.add_option("--guests", command->guests,
                  "how many machines: g0, g1 ..., in the place of the topology's first hosts (default: all hosts of "
                  "--topology; 2 without)")
      ->check(CLI::Range(std::size_t{1}, kMostGuests));
  line.add_option("--device", command->devices,
                  "a device of yours in the place of the guest's NIC: QEMU's x-pci-proxy-dev connects to the first "
                  "socket, and QEMU listens for interrupts at the second one; may be repeated")
      ->allow_extra_args(false)
      ->type_name("GUEST=SOCKET,qtest=SOCKET");
  const auto set_memory = [&options](const std::string& text) { options.memory = memory_of(text); };
  line.add_option_function<std::string>("--memory", set_memory, "of each guest (default: 256MiB)")->type_name("SIZE");
  line.add_option("--wire", command->wire,
                  "join the guests' Ethernet to a socket, at which another program listens: rnicsim run --wire "
                  "h1=unix:PATH; docs/live-wire.md")
      ->type_name("unix:PATH");
  add_image_options(line, *command);
  command->simulation.topology.clear();
  add_configuration(line, command->simulation);
  add_observers(line, command->observers);
  add_engine(line, command->simulation.engine);
  add_seed(line, command->simulation.seed, "of everything random")->capture_default_str();
  line.add_option("--kernel-words", options.kernel_words, "more parameters of the kernel, such as 'dyndbg=...'")
      ->type_name("WORDS");
  line.add_option("--consoles", options.consoles, "write the guests' consoles to this folder: g0.console ...")
      ->type_name("FOLDER");
  const auto add_time = [&line](const char* name, Duration& time, const char* meaning) {
    const auto set = [=, &time](const std::string& text) { time = time_of(name, text); };
    line.add_option_function<std::string>(name, set, meaning)->type_name("TIME");
  };
  add_time("--boot-limit", options.boot_limit, "how long booting may take (default: 300s)");
  add_time("--gap", options.most_gap,
           "a command starts when the one before it waits or has ended, and after this time at the latest (default: "
           "10s)");
  const auto set_limit = [&options](const std::string& text) { options.limits.wall = time_of("--wall-limit", text); };
  line.add_option_function<std::string>("--wall-limit", set_limit, "end after so much real time, with status 124")
      ->type_name("TIME");
  line.footer(
      "The exit status is the worst of the commands' (128 + signal for one that was killed); 1 when a guest does not "
      "boot or is lost, its kernel told of a fault, a counter disagrees with the trace, or --check has a finding; 2 "
      "for what cannot be run, 3 when the RTL's referee objects, 124 at the limit, 128 + signal when the run was ended "
      "by one.");
  return {&line, [command] { return run_vm(*command); }};
}

}  // namespace rnicsim::sim
