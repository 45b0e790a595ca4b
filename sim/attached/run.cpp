#include "sim/attached/run.h"

#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <utility>

#include "sim/attached/attach_server.h"
#include "sim/attached/host_files.h"
#include "sim/attached/native_programs.h"
#include "sim/attached/network.h"
#include "sim/attached/output.h"
#include "sim/attached/program_launcher.h"
#include "sim/attached/system_calls.h"
#include "sim/attached/time_keeper.h"
#include "sim/summary.h"

namespace rnicsim::sim {
namespace {

std::atomic<int> stop_signal{0};
std::atomic<bool> report_wanted{false};

void on_stop(int signal) { stop_signal = signal; }
void on_report(int) { report_wanted = true; }

void handle_signals() {
  struct sigaction action {};
  action.sa_handler = on_stop;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  action.sa_handler = on_report;
  ::sigaction(SIGUSR1, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

std::vector<HostServices> services_of(System& system) {
  std::vector<HostServices> services;
  for (std::size_t i = 0; i < system.size(); ++i) {
    Host& host = system.host(i);
    services.push_back({host.entry(), &host.kernel(), &host.root_complex(), &system.config().host});
  }
  return services;
}
std::vector<abi::HostEntry> entries_of(System& system) { return system.config().topology.hosts; }

TimeKeeperParams keeper_params(const System& system, const RunOptions& options) {
  TimeKeeperParams params;
  const host::HostParams& host = system.config().host;
  params.simulated = options.time == TimeMode::simulated;
  params.poll_interval = host.poll_interval;
  params.detect = host.cpu.detect;
  params.wakeup = host.cpu.wakeup;
  return params;
}

HostFilesParams files_params(const System& system) {
  const nic::CapabilityParams& nic = system.config().nic.capabilities;
  return {.vendor_part_id = nic.vendor_part_id,
          .gid_table_length = nic.gids,
          .active_speed = nic.active_speed,
          .active_width = nic.active_width};
}

std::string default_socket_name() {
  const char* name = ::getenv(abi::kSocketVariable);
  return name != nullptr ? name : fmt::format("rnicsim-serve-{}", ::geteuid());
}

// One run: the programs that it started, and what became of them.
class Run {
 public:
  Run(System& system, const RunOptions& options, const Waterfall* waterfall, std::optional<std::string> socket_name)
      : system_(system),
        options_(options),
        waterfall_(waterfall),
        serving_(socket_name.has_value()),
        server_(socket_name),
        files_(server_.name(), entries_of(system), files_params(system)),
        launcher_({server_.name(), RNICSIM_LIBRARY_FOLDER}),
        keeper_("time_keeper", keeper_params(system, options), programs_, output_),
        network_("network", system.config().network, entries_of(system)),
        calls_({options.time == TimeMode::simulated, options.seed}, services_of(system), keeper_, network_, server_) {
    calls_.on_exit = [this](Process& process) { ended(process); };
    keeper_.on_standstill = [this] { return stand_still(); };
    keeper_.while_waiting = [this] { look_outside(); };
  }

  int execute() {
    // The summary says how the run ended.
    sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
    system_.start();
    Duration start = now();
    for (std::size_t i = 0; i < options_.commands.size(); ++i) {
      keeper_.at(start, [this, i] { launch(i); });
      start += options_.start_gap;
    }
    if (serving_) keeper_.at(start, [] {});
    do run_on();
    while (!stopped_ && !mismatched() && keeper_.outlast_silence());
    finish();
    return outcome_.worst_status();
  }

  const std::string& socket_name() const { return server_.name(); }

 private:
  struct Started {
    std::size_t command;
    pid_t pid;
    pid_t program = 0;           // under gdb: its child, once it attached
    bool program_ended = false;  // gdb's user is still there
  };

  void launch(std::size_t index) {
    const HostCommand& command = options_.commands[index];
    const std::string host = system_.config().topology.hosts[command.host].name;
    const Tool tool = options_.gdb_hosts.contains(command.host)        ? Tool::gdb
                      : options_.valgrind_hosts.contains(command.host) ? Tool::valgrind
                                                                       : Tool::none;
    if (tool != Tool::none) keeper_.be_patient(true);
    Launched launched;
    try {
      launched = launcher_.launch(host, command.executable, command.argv, tool);
    } catch (const std::system_error& error) {
      spdlog::error("{}: {}", host, error.what());
      record(index, 127);
      return;
    }
    started_.push_back({index, launched.pid});
    if (launched.standard_output) output_.add(std::move(launched.standard_output), host, stdout);
    if (launched.standard_error) output_.add(std::move(launched.standard_error), host, stderr);
    // gdb's child is the program; the others become it.
    const bool child = tool == Tool::gdb;
    auto guest = server_.await(child ? 0 : launched.pid, child ? launched.pid : 0, [&] {
      look_outside();
      siginfo_t info{};
      return ::waitid(P_PID, id_t(launched.pid), &info, WEXITED | WNOWAIT | WNOHANG) != 0 || info.si_pid != 0 ||
             stop_signal != 0;
    });
    if (!guest) {
      output_.drain();
      spdlog::error("{}: {} ended before it attached", host, command.argv.front());
      reap(launched.pid);
      return;
    }
    if (child) started_.back().program = pid_t(guest->hello.pid);
    calls_.admit(std::move(*guest), command.host, nullptr, now());
  }

  void ended(Process& process) {
    const pid_t pid = process.identity().pid;
    for (Started& started : started_)
      if (started.program == pid) started.program_ended = true;
    if (process.parent == nullptr) reap(pid);
  }

  // A gdb outlives its program: its user may still look around. False: there is none.
  bool wait_for_user() {
    const auto found = std::ranges::find(started_, true, &Started::program_ended);
    if (found == started_.end()) return false;
    siginfo_t info{};
    ::waitid(P_PID, id_t(found->pid), &info, WEXITED | WNOWAIT | WNOHANG);
    if (info.si_pid == 0) {
      ::usleep(10'000);
    } else {
      reap(found->pid);
    }
    return true;
  }

  void reap(pid_t pid) {
    const auto found = std::ranges::find(started_, pid, &Started::pid);
    if (found == started_.end()) return;
    int status = 0;
    ::waitpid(pid, &status, 0);
    const std::size_t command = found->command;
    started_.erase(found);
    record(command, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
    if (WIFSIGNALED(status) && !ending_)
      outcome_.warnings.push_back(fmt::format("{}: {} was killed by signal {} ({})", host_name(command),
                                              options_.commands[command].argv.front(), WTERMSIG(status),
                                              ::strsignal(WTERMSIG(status))));
  }

  bool mismatched() const { return !system_.engines().mismatch().empty(); }

  std::string host_name(std::size_t command) const {
    return system_.config().topology.hosts[options_.commands[command].host].name;
  }

  void record(std::size_t command, int status) {
    outcome_.programs.push_back({host_name(command), options_.commands[command].argv, status});
    if (outcome_.programs.size() == options_.commands.size() && !serving_) stop();
  }

  void stop() {
    // What the dead leave takes the device a moment to forget; nobody is there to see it.
    if (stopped_) return;
    stopped_ = true;
    outcome_.end = now();
    Agenda::current()->yield();
    sc_core::sc_stop();
  }

  // Nothing is to come. Programs that only serve (they wait for a connection that nobody will make) are at their end
  // when the others are.
  bool stand_still() {
    look_outside();
    if (stop_signal != 0) return false;
    // A program that another has just killed takes a moment to be gone.
    if (std::exchange(stood_still_at_, now()) != now()) {
      ::usleep(20'000);
      return true;
    }
    if (wait_for_user()) return !stopped_;
    if (serving_) {
      admit_stranger();
      ::usleep(1000);
      return true;
    }
    const bool someone_finished = !outcome_.programs.empty();
    const bool all_serve = keeper_.all_wait_for_descriptors();
    if (someone_finished && all_serve) {
      for (const Started& still : started_)
        fmt::print(stderr, "rnicsim: {}: {} still waits for a connection; ended, for nothing more can happen\n",
                   host_name(still.command), options_.commands[still.command].argv.front());
    } else {
      outcome_.warnings.push_back("stood still: every program waits, and nothing is to come\n" + state());
    }
    end_all(someone_finished && all_serve ? 0 : 1);
    return false;
  }

  void admit_stranger() {
    auto guest = server_.take_stranger([&](pid_t pid) {
      return std::ranges::any_of(keeper_.processes(), [&](const auto& process) {
        return process->alive && process->identity().pid == pid;
      });
    });
    if (!guest) return;
    const auto host = calls_.host_named(guest->hello.host);
    if (!host) return AttachServer::refuse(*guest, ENOENT, fmt::format("there is no host {}", guest->hello.host));
    calls_.admit(std::move(*guest), *host, nullptr, now());
  }

  void end_all(int status) {
    ending_ = true;
    for (const auto& process : keeper_.processes())
      if (process->alive) process->kill();
    for (const Started& still : started_) {
      ::kill(still.pid, SIGKILL);
      int ignored;
      ::waitpid(still.pid, &ignored, 0);
      outcome_.programs.push_back({host_name(still.command), options_.commands[still.command].argv, status});
    }
    started_.clear();
    output_.drain();
    stop();
  }

  void look_outside() {
    if (report_wanted.exchange(false)) fmt::print(stderr, "rnicsim: simulated time {}\n{}", to_string(now()), state());
    if (stop_signal != 0 && !ending_) end_all(serving_ ? 0 : 128 + stop_signal);
    if (serving_ && server_.has_visitors()) admit_stranger();
  }

  std::string state() {
    std::string text = keeper_.describe();
    for (std::size_t i = 0; i < system_.size(); ++i) system_.host(i).nic().describe_state(text);
    return text;
  }

  void finish() {
    output_.drain();
    if (!ending_ && (mismatched() || outcome_.programs.size() < options_.commands.size())) end_all(1);
    for (const auto& process : keeper_.processes())
      if (auto why = process->disturbance()) keeper_.disturbed(std::move(*why));
    for (const std::string& why : keeper_.disturbances()) outcome_.warnings.push_back("not reproducible: " + why);
    if (waterfall_ != nullptr) outcome_.waterfall = waterfall_->summary();
    std::fflush(stdout);
    fmt::print("{}", summary_text(system_, outcome_));
    if (options_.json) write_results(*options_.json, system_, options_, outcome_);
  }

  System& system_;
  const RunOptions& options_;
  const Waterfall* const waterfall_;
  const bool serving_;
  OutputRelay output_;
  AttachServer server_;
  HostFiles files_;
  ProgramLauncher launcher_;
  NativePrograms programs_;
  TimeKeeper keeper_;
  Network network_;
  SystemCalls calls_;
  std::vector<Started> started_;
  RunOutcome outcome_;
  std::optional<Duration> stood_still_at_;
  bool ending_ = false;
  bool stopped_ = false;
};

}  // namespace

int run_programs(System& system, const RunOptions& options, const Waterfall* waterfall) {
  handle_signals();
  return Run(system, options, waterfall, std::nullopt).execute();
}

int serve_programs(System& system, const RunOptions& options, const Waterfall* waterfall) {
  handle_signals();
  Run run(system, options, waterfall, default_socket_name());
  fmt::print("rnicsim: serving at {}; `rnicsim env HOST` prints a program's environment\n", run.socket_name());
  std::fflush(stdout);
  return run.execute();
}

int print_environment(const std::string& host) {
  const ProgramLauncher launcher({default_socket_name(), RNICSIM_LIBRARY_FOLDER});
  for (const std::string& variable : launcher.variables(host)) {
    const auto equals = variable.find('=');
    fmt::print("export {}='{}'\n", variable.substr(0, equals), variable.substr(equals + 1));
  }
  return 0;
}

}  // namespace rnicsim::sim
