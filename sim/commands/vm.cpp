// rnicsim vm: commands in virtual machines with a Linux of their own.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "sim/commands/command.h"
#include "sim/commands/options.h"
#include "sim/config/config_error.h"
#include "sim/descriptor.h"
#include "sim/guest/path_socket.h"
#include "sim/guest/vm/common_network.h"
#include "sim/guest/vm/guest_run.h"

namespace rnicsim::sim {
namespace {

struct VmCommand {
  GuestOptions options;
  std::vector<std::pair<std::string, std::string>> on;  // guests, command
  std::string wire;
  bool image_only = false;
};

constexpr std::size_t kMostGuests = 64;

ByteCount memory_of(const std::string& text) {
  constexpr ByteCount kLeast{128u << 20}, kMost{64ull << 30};
  const auto size = parse_byte_count(text);
  if (!size)
    throw CLI::ValidationError(fmt::format("--memory: '{}' is not a size with its unit, such as 256MiB", text));
  if (*size < kLeast || *size > kMost)
    throw CLI::ValidationError(fmt::format("--memory: '{}' is not within 128 MiB and 64 GiB", text));
  return *size;
}

// The other end listens already, or will within this time.
Descriptor connect_wire(const std::string& wire) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kPatience{10};
  constexpr std::string_view kUnix = "unix:";
  if (!wire.starts_with(kUnix)) throw ConfigError(fmt::format("--wire '{}': unix:PATH is needed", wire));
  const auto path = wire.substr(kUnix.size());
  for (const auto end = Clock::now() + kPatience;;) {
    if (auto socket = connect_to_path(path)) return socket;
    const int error = errno;
    if ((error != ENOENT && error != ECONNREFUSED) || Clock::now() >= end)
      throw ConfigError(fmt::format("--wire: {}: {}", path, std::strerror(error)));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

int run_vm(VmCommand& command) {
  refuse_simulated_host("vm");
  GuestOptions& options = command.options;
  options.commands = guest_commands(command.on, options.guests);
  if (options.commands.empty() && !command.image_only)
    throw ConfigError("what are the guests to do? --on GUEST COMMAND, such as --on g0 'uname -r'");
  try {
    if (command.image_only) {
      make_guest_image(options.image);
      return 0;
    }
    CommonNetwork network(options.guests, command.wire.empty() ? Descriptor() : connect_wire(command.wire));
    return run_guests(options, network);
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
  line.add_option("--guests", options.guests, "how many machines: g0, g1 ...")
      ->check(CLI::Range(std::size_t{1}, kMostGuests))
      ->capture_default_str();
  const auto set_memory = [&options](const std::string& text) { options.memory = memory_of(text); };
  line.add_option_function<std::string>("--memory", set_memory, "of each guest (default: 256MiB)")->type_name("SIZE");
  line.add_option("--wire", command->wire,
                  "join the guests' Ethernet to a socket, at which another program listens: rnicsim run --wire "
                  "h1=unix:PATH; docs/live-wire.md")
      ->type_name("unix:PATH");
  add_image_options(line, *command);
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
      "boot or is lost, or its kernel told of a fault, 2 for what cannot be run, 124 at the limit, 128 + signal when "
      "the run was ended by one.");
  return {&line, [command] { return run_vm(*command); }};
}

}  // namespace rnicsim::sim
