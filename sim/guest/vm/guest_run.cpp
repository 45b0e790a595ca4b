// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/vm/guest_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <optional>

#include "sim/config/config_error.h"
#include "sim/config/host_names.h"
#include "sim/guest/vm/machine.h"
#include "sim/os/labelled_lines.h"
#include "sim/os/progress_line.h"

namespace rnicsim::sim {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{100};
// Time for the kernels to shut down their devices.
constexpr std::chrono::seconds kPatience{20};

std::chrono::nanoseconds real(Duration time) { return std::chrono::nanoseconds(time.ps / 1000); }

void say(const std::string& text) {
  progress_line::erase();
  fmt::print(stderr, "rnicsim: {}\n", text);
}

struct CommandUnderWay {
  CommandUnderWay(const std::string& guest, const GuestCommandLine& given)
      : guest(given.guest), line(given.line), output(guest, stdout), errors(guest, stderr) {}

  std::size_t guest;
  std::string line;
  LabelledLines output, errors;
  std::optional<Clock::time_point> started;
  bool waits = false;  // the processes sleep or the command has ended: the next command may start
  std::optional<int> status;
};

class GuestRun {
 public:
  GuestRun(const GuestOptions& options, const GuestImage& image, GuestDevices& devices)
      : options_(options), image_(image), devices_(devices), watch_(options.limits) {}

  int execute() {
    start_machines();
    while (!status_ && !all_booted()) wait_for_boot();
    while (!status_ && !all_ended()) {
      start_next();
      step();
      if (!status_) check();
    }
    if (!status_) power_off();
    for (const auto& machine : machines_) machine->kill();
    for (auto& command : commands_) {
      command.output.end();
      command.errors.end();
    }
    progress_line::erase();
    return status_.value_or(worst_status());
  }

 private:
  void start_machines() {
    started_ = Clock::now();
    std::vector<DeviceArguments> arguments;
    for (std::size_t i = 0; i < options_.guests; ++i) arguments.push_back(devices_.arguments(i));
    for (std::size_t i = 0; i < options_.guests; ++i) {
      const std::string file = options_.consoles.empty() ? "" : fmt::format("{}/g{}.console", options_.consoles, i);
      const MachineParams params{i, options_.guests, options_.memory, options_.kernel_words, file};
      machines_.push_back(std::make_unique<Machine>(params, image_, arguments[i]));
    }
    for (const auto& command : options_.commands) commands_.emplace_back(machines_[command.guest]->name(), command);
  }

  bool all_booted() const {
    return std::ranges::all_of(machines_, [](const auto& machine) { return machine->is_ready(); });
  }
  bool all_ended() const {
    return std::ranges::all_of(commands_, [](const auto& command) { return command.status.has_value(); });
  }
  int worst_status() const {
    int worst = 0;
    for (const auto& command : commands_) worst = std::max(worst, command.status.value_or(1));
    for (const auto& machine : machines_)
      if (machine->had_fault()) worst = std::max(worst, 1);
    return worst;
  }

  void wait_for_boot() {
    step();
    check();
    if (status_ || all_booted()) return;
    const auto elapsed = Clock::now() - started_;
    if (progress_line::is_due())
      progress_line::show(fmt::format("the guests boot: {:.0f} s", std::chrono::duration<double>(elapsed).count()));
    if (elapsed < real(options_.boot_limit)) return;
    for (const auto& machine : machines_)
      if (!machine->is_ready()) show_console(*machine);
    end(fmt::format("the guests have not booted within {} (--boot-limit)", to_string(options_.boot_limit)), 1);
  }

  // Starts the next command when the one before sleeps or has ended: a server starts before its clients.
  void start_next() {
    const auto next = std::ranges::find_if(commands_, [](const auto& command) { return !command.started; });
    if (next == commands_.end()) return;
    if (next != commands_.begin()) {
      const auto& before = *std::prev(next);
      if (!before.waits && Clock::now() - *before.started < real(options_.most_gap)) return;
    }
    next->started = Clock::now();
    const auto number = std::uint32_t(std::distance(commands_.begin(), next) + 1);
    machines_[next->guest]->send(FrameKind::start, number, next->line);
  }

  // Runs the devices for kLook at most, and handles the guests' frames.
  void step() {
    watched_.clear();
    for (const auto& machine : machines_) machine->add_to(watched_);
    devices_.work(watched_, kLook);
    bool printed = false;
    for (const auto& machine : machines_)
      for (const Frame& frame : machine->step()) printed |= take(*machine, frame);
    if (printed) flush_both();
  }

  static void flush_both() {
    std::fflush(stdout);
    std::fflush(stderr);
  }

  // True: something was printed.
  bool take(const Machine& machine, const Frame& frame) {
    if (frame.command == 0 || frame.command > commands_.size()) {
      end(fmt::format("{}'s agent reports an unknown command {}", machine.name(), frame.command), 1);
      return false;
    }
    auto& command = *std::next(commands_.begin(), std::ptrdiff_t(frame.command) - 1);
    switch (frame.kind) {
      case FrameKind::output: command.output.print(frame.payload); return true;
      case FrameKind::errors: command.errors.print(frame.payload); return true;
      case FrameKind::settled: command.waits = true; return false;
      case FrameKind::ended:
        command.waits = true;
        command.status = int(payload_number(frame.payload).value_or(1));
        return false;
      default:
        end(fmt::format("{}'s agent sends a frame of kind {}", machine.name(), int(frame.kind)), 1);
        return false;
    }
  }

  void check() {
    if (const auto end_wish = watch_.end()) {
      for (const auto& command : commands_)
        if (command.started && !command.status)
          say(fmt::format("g{}: '{}' is still running", command.guest, shown(command.line)));
      fmt::print(stderr, "{}", devices_.state());
      return end(end_wish->why, end_wish->status);
    }
    if (devices_.have_stopped()) return end("the simulation has stopped", 1);
    for (const auto& machine : machines_) {
      if (!machine->lost()) continue;
      show_console(*machine);
      return end(fmt::format("{}: {}", machine->name(), *machine->lost()), 1);
    }
  }

  static void show_console(const Machine& machine) {
    const auto text = machine.console().last_lines();
    if (text.empty()) return say(fmt::format("{}'s console printed nothing", machine.name()));
    say(fmt::format("{}'s console ended with:", machine.name()));
    fmt::print(stderr, "{}", text);
  }

  void end(const std::string& why, int status) {
    if (status_) return;
    say(why);
    status_ = status;
  }

  void power_off() {
    devices_.expect_end();
    for (const auto& machine : machines_) machine->send(FrameKind::power_off, 0, {});
    const auto until = Clock::now() + kPatience;
    const auto is_off = [](const auto& machine) { return machine->lost().has_value(); };
    while (!std::ranges::all_of(machines_, is_off)) {
      step();
      if (const auto end_wish = watch_.end()) end(end_wish->why, end_wish->status);
      if (status_) return;
      if (Clock::now() < until) continue;
      for (const auto& machine : machines_)
        if (!is_off(machine))
          say(fmt::format("{} has not shut down within {} s, and is ended", machine->name(), kPatience.count()));
      return;
    }
  }

  const GuestOptions& options_;
  const GuestImage& image_;
  GuestDevices& devices_;
  Watch watch_;
  std::vector<std::unique_ptr<Machine>> machines_;
  std::list<CommandUnderWay> commands_;
  std::vector<pollfd> watched_;
  Clock::time_point started_;
  std::optional<int> status_;  // set when the run ends before its commands
};

}  // namespace

std::vector<GuestCommandLine> guest_commands(const std::vector<std::pair<std::string, std::string>>& on,
                                             std::size_t guests) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < guests; ++i) names.push_back(fmt::format("g{}", i));
  std::vector<GuestCommandLine> commands;
  for (const auto& [text, line] : on)
    for (const auto& name : expand_names(text)) {
      const auto found = std::ranges::find(names, name);
      if (found == names.end())
        throw ConfigError(fmt::format("no guest is called '{}'; there are {} to {} (--guests)", shown(name),
                                      names.front(), names.back()));
      if (line.size() > kMostPayloadBytes)
        throw ConfigError(fmt::format("--on {}: a command of {} bytes is too long; {} are the most", name, line.size(),
                                      kMostPayloadBytes));
      commands.push_back({std::size_t(found - names.begin()), line});
    }
  return commands;
}

int run_guests(const GuestOptions& options, GuestDevices& devices) {
  if (!options.consoles.empty()) {
    std::error_code error;
    fs::create_directories(options.consoles, error);
    if (error) throw ConfigError(fmt::format("{}: {}", shown(options.consoles), error.message()));
  }
  // Before GuestRun creates its Watch: until then a signal ends this process, and the image's maker with it.
  const GuestImage image = make_guest_image(options.image);
  std::signal(SIGPIPE, SIG_IGN);
  return GuestRun(options, image, devices).execute();
}

}  // namespace rnicsim::sim
