// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/run.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "model/abi/attach.h"
#include "model/host/host_kernel.h"
#include "model/host/kernel_agent.h"
#include "model/host/log.h"
#include "model/nic/nic.h"
#include "model/nic/packets/receive/receive_buffer.h"
#include "sim/adapter.h"
#include "sim/adapter_counters.h"
#include "sim/attached/attach_server.h"
#include "sim/attached/descriptor_budget.h"
#include "sim/attached/host_files.h"
#include "sim/attached/native/native_programs.h"
#include "sim/attached/network/network.h"
#include "sim/attached/network/outside_world.h"
#include "sim/attached/output.h"
#include "sim/attached/program_launcher.h"
#include "sim/attached/serving.h"
#include "sim/attached/summary.h"
#include "sim/attached/system_calls.h"
#include "sim/attached/time/probe.h"
#include "sim/attached/time/time_keeper.h"
#include "sim/config/config.h"
#include "sim/config/config_error.h"
#include "sim/config/own_files.h"
#include "sim/engine_choice.h"
#include "sim/os/progress_line.h"
#include "sim/simulated_host.h"
#include "sim/snapshot_server.h"
#include "sim/warnings/control_settings.h"
#include "sim/warnings/pause_settings.h"
#include "sim/warnings/round_trips.h"
#include "sim/warnings/unused_priorities.h"
#include "sim/watch.h"

namespace rnicsim::sim {
namespace {

namespace fs = std::filesystem;

// A run is over when a program has failed and the others wait for this much simulated time without progress
// (options.grace). When all ended programs succeeded, the time is 10 times as long. While a NIC has work (retries and
// their timers), it is at least 60 s.
constexpr std::int64_t kGraceAfterSuccess = 10;
constexpr Duration kGraceWithWork{60'000'000'000'000};

// A run stands still when no event is pending for this much real time.
using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPatience{20};
constexpr std::chrono::milliseconds kKernelPatience{2'000};  // while a thread is blocked in a real system call

// Decides in real time whether a server has started: all programs sleep. Some programs never sleep, hence kLongest.
class Settling {
 public:
  void begin() { began_ = awake_ = Clock::now(); }
  bool ends(bool all_sleep) {
    const auto now = Clock::now();
    if (!all_sleep) awake_ = now;
    return now - awake_ >= kAsleep || now - began_ >= kLongest;
  }

 private:
  static constexpr std::chrono::milliseconds kAsleep{10};
  static constexpr std::chrono::seconds kLongest{2};
  Clock::time_point began_, awake_;
};
constexpr Duration kRealTimeLook{1'000'000'000};
// Real time that a run waits for the outside world to take the last bytes of the programs.
constexpr std::chrono::seconds kLastBytes{5};

// Refuses to start on a system whose restrictions would look like failures of the programs.
void prepare_process() {
  if (const std::string problem = system_problem(); !problem.empty()) throw ConfigError(problem);
  ::signal(SIGPIPE, SIG_IGN);
}

// A program without the descriptor of the libraries' folder would run outside of the simulation.
void require_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max <= rlim_t(abi::kLibraryDescriptor))
    throw ConfigError(
        fmt::format("a process may have at most {} open files, but programs need {}: raise the hard limit (ulimit -Hn)",
                    limit.rlim_max, abi::kLibraryDescriptor + 1));
}

std::vector<HostServices> services_of(System& system) {
  std::vector<HostServices> services;
  for (std::size_t i = 0; i < system.hosts(); ++i) {
    Host& host = system.host(i);
    auto& made = services.emplace_back(HostServices{host.name(), nullptr, {}, &system.config().host_of(i)});
    if (host.is_guest()) continue;  // a guest runs no programs of the simulation
    made.kernel = &host.kernel();
    for (const auto& adapter : host.adapters()) made.agents.push_back(&adapter->agent());
    made.quiet_until = [&host](Duration next) {
      Duration quiet = Agenda::kNever;
      for (const auto& adapter : host.adapters()) quiet = std::min(quiet, adapter->nic().quiet_until(next));
      return quiet;
    };
  }
  return services;
}
std::vector<abi::NetworkInterface> entries_of(System& system) { return system.config().topology.interfaces; }

TimeKeeperParams keeper_params(const System& system, const RunOptions& options, const DescriptorBudget& budget) {
  TimeKeeperParams params;
  params.simulated = options.time != TimeMode::real;
  params.each_look = options.time == TimeMode::each_look;
  const auto times_of = [](const host::HostParams& host) { return HostTimes{host.cpu.detect, host.cpu.wakeup}; };
  params.times = times_of(system.config().host);
  if (!system.config().profiles.host_types.by_name.empty())
    for (std::size_t i = 0; i < system.hosts(); ++i) params.of_hosts.push_back(times_of(system.config().host_of(i)));
  params.watched_end = budget.end_for_waits();
  if (options.grace) params.look_when_quiet = Duration{options.grace->ps / 4};
  return params;
}

std::vector<HostFilesParams> files_params(const System& system) {
  std::vector<HostFilesParams> params;
  for (std::size_t i = 0; i < system.adapters(); ++i) {
    const auto nic = system.config().nic_of(i).capabilities;
    params.push_back({.vendor_part_id = nic.vendor_part_id,
                      .gid_table_length = nic.gids,
                      .active_speed = nic.active_speed,
                      .active_width = nic.active_width});
  }
  return params;
}

// One run: starts the programs and collects their results.
class Run {
 public:
  enum class Purpose { run, serve };
  Run(System& system, const RunOptions& options, const Waterfall* waterfall, Purpose purpose,
      const std::string& socket_name, OutsideWorld* outside = nullptr)
      : system_(system),
        options_(options),
        waterfall_(waterfall),
        outside_(outside),
        serving_(purpose == Purpose::serve),
        watch_(options.limits),
        server_(socket_name),
        files_(server_.name(), entries_of(system), files_params(system)),
        launcher_({server_.name(), library_folder(), budget_.given()}),
        keeper_("time_keeper", keeper_params(system, options, budget_), programs_, output_),
        network_("network", system.config().network, entries_of(system), outside),
        calls_({options.time != TimeMode::real, options.time == TimeMode::each_look, options.seed}, services_of(system),
               keeper_, network_, server_, budget_) {
    keeper_.outside = outside;
    if (outside != nullptr) outside->join(network_);
    calls_.on_exit = [this](Process& process) { ended(process); };
    keeper_.on_standstill = [this] { return stand_still(); };
    keeper_.while_waiting = [this] { look_outside(); };
    output_.goes_on = [this] {
      if (!ending_) tell_outside();
      return !watch_.end();
    };
    keeper_.on_quiet = [this] { end_if_in_vain(); };
    watch_.look_with([this] {
      look_outside();
      keeper_.find_the_dead();
      keeper_.hear_from_outside();
    });
  }

  int execute() {
    // The summary reports the end instead of SystemC.
    sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
    system_.start();
    ready_ = true;
    if (!stopped_) run_all();
    finish();
    return std::max(outcome_.worst_status(), end_status_);
  }

  const std::string& socket_name() const { return server_.name(); }
  const RunOutcome& outcome() const { return outcome_; }

 private:
  struct Started {
    std::size_t command;
    pid_t pid;
    pid_t program = 0;           // under gdb: gdb's child, once it attached
    bool program_ended = false;  // gdb may still run
  };

  void run_all() {
    keeper_.threads().at(now(), [this] { launch_from(0); });
    const Duration limit = options_.limits.simulated.value_or(Agenda::kNever);
    // The start of the devices may have taken until the limit.
    if (now() < limit) do
        run_on(limit);
      while (!stopped_ && !mismatched() && now() < limit && keeper_.outlast_silence());
    if (!stopped_ && !mismatched() && now() >= limit) end_early(at_simulated_limit(limit));
  }

  void launch_from(std::size_t index) {
    if (index == options_.commands.size()) return;
    launch(index);
    settling_.begin();
    if (serving_ || index + 1 < options_.commands.size())
      keeper_.threads().at(now() + options_.start_gap, [this, index] { launch_when_settled(index + 1); });
  }
  // In real time the simulated gap says nothing about the progress of the last program's start.
  void launch_when_settled(std::size_t index) {
    if (options_.time != TimeMode::real || settling_.ends(keeper_.all_sleep())) return launch_from(index);
    keeper_.threads().at(now() + kRealTimeLook, [this, index] { launch_when_settled(index); });
  }

  void launch(std::size_t index) {
    const HostCommand& command = options_.commands[index];
    const std::string host = system_.config().topology.interfaces[command.host].name;
    const Tool tool = options_.gdb_hosts.contains(command.host)        ? Tool::gdb
                      : options_.valgrind_hosts.contains(command.host) ? Tool::valgrind
                                                                       : Tool::none;
    if (tool != Tool::none) keeper_.be_patient(true);
    Launched launched;
    try {
      launched = launcher_.launch(host, command.executable, command.argv, tool);
    } catch (const std::system_error& error) {
      host::log_error(fmt::format("{}: {}", host, error.what()));
      ++launched_;
      record(index, 127);
      return;
    }
    ++launched_;
    started_.push_back({index, launched.pid});
    if (launched.standard_output) output_.add(std::move(launched.standard_output), host, stdout);
    if (launched.standard_error) output_.add(std::move(launched.standard_error), host, stderr);
    // gdb starts the program as its child; valgrind executes the program in place.
    const bool child = tool == Tool::gdb;
    Patience patience(fmt::format("{}: {}", host, command.argv.front()));
    auto guest = server_.await(child ? 0 : launched.pid, child ? launched.pid : 0, [&] {
      look_outside();
      if (ending_ || has_ended(launched.pid)) return true;
      if (tool != Tool::none || !patience.ends()) return false;
      ::kill(launched.pid, SIGKILL);
      return true;
    });
    if (!guest) {
      output_.drain();
      if (!ending_) host::log_error(fmt::format("{}: {} ended before it attached", host, command.argv.front()));
      reap(launched.pid);
      return;
    }
    if (!calls_.has_room(*guest, command.host)) {
      ::kill(launched.pid, SIGKILL);
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

  // True: the child of this process has ended. It stays a zombie.
  static bool has_ended(pid_t pid) {
    siginfo_t info{};
    return ::waitid(P_PID, id_t(pid), &info, WEXITED | WNOWAIT | WNOHANG) != 0 || info.si_pid != 0;
  }

  // gdb may run on after its program has ended, since its user may still inspect it. False: no such gdb.
  bool wait_for_user() {
    const auto found = std::ranges::find(started_, true, &Started::program_ended);
    if (found == started_.end()) return false;
    if (has_ended(found->pid)) {
      reap(found->pid);
    } else {
      ::usleep(10'000);
    }
    return true;
  }

  // Collects the status of a started program that has ended or was killed.
  void reap(pid_t pid) {
    const auto found = std::ranges::find(started_, pid, &Started::pid);
    if (found == started_.end()) return;
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    const std::size_t command = found->command;
    started_.erase(found);
    if (WIFSIGNALED(status) && !ending_) tell_of_death(command, WTERMSIG(status));
    record(command, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
  }

  // Printed at once, since the run may continue for long.
  void tell_of_death(std::size_t command, int signal) {
    outcome_.warnings.push_back(fmt::format("{}: {} was killed by signal {} ({})", host_name(command),
                                            options_.commands[command].argv.front(), signal, ::strsignal(signal)));
    output_.drain();
    say(outcome_.warnings.back());
  }

  static void say(const std::string& text) {
    progress_line::erase();
    fmt::print(stderr, "rnicsim: {}\n", text);
  }

  bool mismatched() const { return !system_.engines().mismatch().empty(); }

  std::string host_name(std::size_t command) const {
    return system_.config().topology.interfaces[options_.commands[command].host].name;
  }

  void record(std::size_t command, int status) {
    outcome_.programs.push_back({host_name(command), options_.commands[command].argv, status});
    if (outcome_.programs.size() == options_.commands.size() && !serving_) stop_behind_last_bytes();
  }

  // With a live wire the run continues until the outside peer has the programs' last bytes.
  void stop_behind_last_bytes() {
    if (outside_ == nullptr || ending_) return stop();
    last_ended_ = Clock::now();
    keeper_.threads().at(now() + kRealTimeLook, [this] { stop_unless_pending(); });
  }
  void stop_unless_pending() {
    if (stopped_ || ending_) return;
    if (!outside_->has_outstanding() || Clock::now() - last_ended_ >= kLastBytes) return stop();
    keeper_.threads().at(now() + kRealTimeLook, [this] { stop_unless_pending(); });
  }

  void stop() {
    // The device still has to destroy objects of ended programs, but no program is left to see the effect.
    if (stopped_) return;
    stopped_ = true;
    keeper_.end();
    outcome_.end = now();
    Agenda::current()->yield();
    sc_core::sc_stop();
  }

  // Called when no event is pending. Ends the run if the remaining programs only wait for connections that cannot come
  // any more. True: wait on.
  bool stand_still() {
    look_outside();
    if (ending_) return false;
    if (keeper_.hear_from_outside()) return true;
    // A program that prints is blocked in the real kernel until its output is read.
    if (std::exchange(seen_relayed_, output_.relayed()) != output_.relayed()) return true;
    // A killed program takes a moment to exit, and a thread in the real kernel may return.
    if (std::exchange(stood_still_at_, now()) != now()) stood_still_since_ = Clock::now();
    if (Clock::now() - stood_still_since_ < (keeper_.waits_for_real_kernel() ? kKernelPatience : kPatience)) {
      ::usleep(1000);
      return true;
    }
    if (wait_for_user()) return !stopped_;
    if (serving_) {
      admit_stranger();
      // The shell runs outside of the simulation and writes into pipes of its programs.
      keeper_.descriptor_waits().poll();
      ::usleep(1000);
      return true;
    }
    end_those_who_wait("deadlock: every program waits, and no event is pending");
    return false;
  }

  // Ends servers that have no clients left, with status 0. If a program waits for anything else, this is a deadlock.
  void end_those_who_wait(const std::string& standstill) {
    const bool someone_finished = !outcome_.programs.empty();
    if (!someone_finished || !keeper_.all_wait_for_descriptors()) return end_early({standstill, 1});
    for (const Started& still : started_)
      say(fmt::format("{}: {} still waits for a connection; ended, because no event is pending",
                      host_name(still.command), options_.commands[still.command].argv.front()));
    end_all(0);
  }

  // Called without progress: only polls and timeouts happen.
  void end_if_in_vain() {
    if (!ending_ && !system_.deadlock().empty()) return end_early({system_.deadlock(), 1});
    if (serving_ || ending_ || outcome_.programs.empty() || launched_ < options_.commands.size()) return;
    const bool failed = outcome_.worst_status() != 0;
    Duration grace = *options_.grace * (failed ? 1 : kGraceAfterSuccess);
    if (system_.sends_outstanding() != 0) grace = std::max(grace, kGraceWithWork);
    const Duration quiet = now() - keeper_.threads().progressed_at();
    if (quiet < grace || !keeper_.all_wait_in_vain()) return;
    end_those_who_wait(fmt::format("no progress: {}, and the other programs have only waited for {} of simulated time",
                                   failed ? "a program failed" : "a program ended", to_string(quiet)));
  }

  // The warning has the state of every thread and queue pair.
  void end_early(const Watch::End& end) {
    outcome_.warnings.push_back(end.why + '\n' + state());
    end_status_ = end.status;
    end_all(end.status);
  }

  void admit_stranger() {
    auto guest = server_.take_stranger([&](pid_t pid) {
      return std::ranges::any_of(keeper_.threads().processes(),
                                 [&](const auto& process) { return process->alive && process->identity().pid == pid; });
    });
    if (!guest) return;
    const auto host = calls_.host_named(guest->hello.host);
    if (!host) return AttachServer::refuse(*guest, ENOENT, fmt::format("there is no host {}", guest->hello.host));
    if (!calls_.has_room(*guest, *host)) return;
    calls_.admit(std::move(*guest), *host, nullptr, now());
  }

  void kill_all() const {
    for (const auto& process : keeper_.threads().processes())
      if (process->alive) process->kill();
  }

  void end_all(int status) {
    ending_ = true;
    kill_all();
    for (const Started& still : started_) {
      ::kill(still.pid, SIGKILL);
      ::waitpid(still.pid, nullptr, 0);
      outcome_.programs.push_back({host_name(still.command), options_.commands[still.command].argv, status});
    }
    started_.clear();
    output_.drain();
    stop();
  }

  void tell_outside() {
    if (progress_line::is_due())
      progress_line::show(fmt::format("{}; {}", progress_line::pace(now()), keeper_.awaited()));
    if (watch_.report_wanted()) {
      progress_line::erase();
      fmt::print(stderr, "rnicsim: simulated time {}\n{}", to_string(now()), state());
    }
    snapshots_.serve();
  }

  // Adds the programs for `rnicsim top`.
  void complete(Snapshot& snapshot) const {
    for (const auto& process : keeper_.threads().processes()) {
      if (!process->alive) continue;
      auto& program = snapshot.programs.emplace_back(
          Snapshot::Program{system_.host(process->identity().host).name(), process->label(), {}});
      for (const Thread& thread : process->threads)
        if (thread.state != ThreadState::free) program.threads.emplace_back(to_string(thread.state));
    }
    snapshot.work = keeper_.awaited();
  }

  void look_outside() {
    if (ending_) return;
    tell_outside();
    if (const auto end = watch_.end()) return end_for(*end);
    if (serving_ && ready_ && server_.has_visitors()) admit_stranger();
  }

  // `serve` ends by a signal: status 0.
  void end_for(const Watch::End& end) {
    if (serving_ && end.status != kLimitStatus) return end_all(0);
    end_early(end);
  }

  // State of the threads and of each NIC's queue pairs.
  std::string state() {
    std::string text = keeper_.describe();
    for (std::size_t i = 0; i < system_.adapters(); ++i) {
      std::string pairs;
      system_.adapter(i).nic().describe_state(pairs);
      constexpr std::size_t kMost = 8192;
      if (pairs.size() > kMost) pairs = pairs.substr(0, pairs.rfind('\n', kMost) + 1) + "...\n";
      if (!pairs.empty()) text += fmt::format("  {}'s NIC:\n{}", system_.adapter(i).label(), pairs);
    }
    return text;
  }

  // Ends daemons, and programs that a shell left in the background.
  void end_survivors() {
    for (const auto& process : keeper_.threads().processes())
      if (process->alive && !ending_)
        say(fmt::format("{}: {} still runs after the end of the started programs, and is ended",
                        system_.host(process->identity().host).name(), process->label()));
    kill_all();
  }

  // The program itself sees only late or lost messages.
  void warn_of_discards() {
    for (std::size_t i = 0; i < system_.adapters(); ++i) {
      const auto frames = system_.adapter(i).nic().blocks().receive_buffer.counters().rx_discards_phy;
      if (frames != 0)
        outcome_.warnings.push_back(
            fmt::format("{}: the NIC had no room for {} received frames and dropped them "
                        "(nic.receive_buffer.size)",
                        system_.adapter(i).label(), frames));
    }
  }

  void warn(std::vector<std::string> warnings) { std::ranges::move(warnings, std::back_inserter(outcome_.warnings)); }

  void finish() {
    end_survivors();
    output_.drain();
    progress_line::erase();
    if (!ending_ && (mismatched() || outcome_.programs.size() < options_.commands.size())) end_all(1);
    for (const auto& process : keeper_.threads().processes())
      if (auto why = process->disturbance()) keeper_.disturbed(std::move(*why));
    if (budget_.refused())
      keeper_.disturbed("calls of programs failed, because the simulator has no free file descriptor");
    if (programs_.read_real_counter())
      keeper_.disturbed(
          "programs read the real time-stamp counter, because prctl(PR_SET_TSC) was refused; in a container: "
          "docker run --security-opt seccomp=unconfined");
    for (const std::string& why : keeper_.disturbances()) outcome_.warnings.push_back("not reproducible: " + why);
    warn_of_discards();
    warn(pause_warnings(system_.config()));
    if (outside_ == nullptr) warn(control_warnings(system_.config()));
    warn(round_trip_warnings(system_.config()));
    warn(system_.pause_storms());
    warn(priority_warnings(system_));
    if (outside_ != nullptr)
      for (auto& line : outside_->report()) outcome_.warnings.push_back(std::move(line));
    if (waterfall_ != nullptr) outcome_.waterfall = waterfall_->summary();
    std::fflush(stdout);
    fmt::print("{}", summary_text(system_, outcome_));
  }

  System& system_;
  const RunOptions& options_;
  const Waterfall* const waterfall_;
  OutsideWorld* const outside_;
  const bool serving_;
  Watch watch_;
  SnapshotServer snapshots_{system_, [this](Snapshot& snapshot) { complete(snapshot); }};
  DescriptorBudget budget_;
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
  Clock::time_point stood_still_since_;
  std::uint64_t seen_relayed_ = 0;  // output_.relayed() at the last standstill
  std::size_t launched_ = 0;        // number of commands
  Settling settling_;
  Clock::time_point last_ended_;  // when the last program ended
  int end_status_ = 0;
  bool ready_ = false;  // the devices have started
  bool ending_ = false;
  bool stopped_ = false;
};

}  // namespace

int run_programs(System& system, const RunOptions& options, const Waterfall* waterfall, JsonOutput& json,
                 OutsideWorld* outside) {
  prepare_process();
  require_descriptors();
  Run run(system, options, waterfall, Run::Purpose::run, AttachServer::random_name("rnicsim-"), outside);
  const int status = run.execute();
  if (json.wanted()) json.write(results_json(system, options, run.outcome()));
  return status;
}

int serve_programs(System& system, const RunOptions& options, const Waterfall* waterfall) {
  prepare_process();
  Run run(system, options, waterfall, Run::Purpose::serve, name_to_serve_at());
  require_alone(run.socket_name());
  fmt::print("rnicsim: serving at {}; `rnicsim env HOST` prints the environment for a program\n", run.socket_name());
  std::fflush(stdout);
  return run.execute();
}

int serve_shell(System& system, const RunOptions& options, const Waterfall* waterfall, const std::string& socket_name,
                const std::function<void()>& ready) {
  prepare_process();
  Run run(system, options, waterfall, Run::Purpose::serve, socket_name);
  require_alone(socket_name);
  ready();
  return run.execute();
}

}  // namespace rnicsim::sim
