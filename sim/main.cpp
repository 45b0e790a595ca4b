// The command line of rnicsim.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "sim/attached/run.h"
#include "sim/bench/bench.h"
#include "sim/calibrate/calibrate.h"
#include "sim/config/config_error.h"
#include "sim/config/param_list.h"
#include "sim/describe.h"
#include "sim/progress_line.h"
#include "sim/recording/counter_audit.h"
#include "sim/recording/recorder.h"
#include "sim/recording/trace_diff.h"
#include "sim/replay/replay.h"
#include "sim/run_options.h"
#include "sim/system.h"
#include "sim/waterfall/follower.h"

namespace {

using namespace rnicsim::sim;
using rnicsim::Duration;

constexpr int kUsageError = 2;
constexpr int kMismatch = 3;

struct CommandLine {
  RunOptions options;
  RunArguments arguments;
  std::string pcap, record, json, env_host;
  bool audit = false;
  FollowOptions follow;
  std::array<std::string, 2> compared;
  replay::ReplayOptions replay;
  bench::BenchOptions bench;
  calibrate::CalibrateOptions calibrate;
  DescribeTopic topic = DescribeTopic::everything;
};

// An option whose values have names. CLI11's own transformer tells the user of enumerators' numbers.
template <class Choice>
void add_choice(CLI::App& command, const char* name, Choice& choice, const std::map<std::string, Choice>& choices,
                const char* meaning) {
  std::vector<std::string> names;
  for (const auto& [text, value] : choices) names.push_back(text);
  const auto joined = fmt::format("{}", fmt::join(names, "|"));
  const auto choose = [=, &choice](const std::string& text) {
    const auto found = choices.find(text);
    if (found == choices.end()) throw CLI::ValidationError(fmt::format("{}: '{}' is none of {}", name, text, joined));
    choice = found->second;
  };
  command.add_option_function<std::string>(name, choose, meaning)->type_name(joined);
}

void add_configuration(CLI::App& command, RunOptions& options) {
  command.add_option("--nic", options.nic, "NIC profile by name, or a TOML file")->capture_default_str();
  command.add_option("--topology", options.topology, "topology by name, or a TOML file")->capture_default_str();
  command.add_option("--set", options.sets, "a parameter, such as nic.pcie.read_latency=600ns; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  command
      .add_option("--fault", options.faults,
                  "what the cables do to frames: drop, corrupt, duplicate, delay (by=2us) or reorder (by=FRAMES, "
                  "limit=10us), with which probability, and to which frames: host=, opcode=, qp=, psn=, nth=, count=; "
                  "such as drop=1e-3,host=h0,opcode=ACKNOWLEDGE; may be repeated; docs/faults.md")
      ->allow_extra_args(false)
      ->type_name("ACTION[=PROBABILITY][,KEY=VALUE]...");
}

Duration time_of(const char* name, const std::string& text) {
  const auto time = rnicsim::parse_duration(text);
  if (!time || time->ps <= 0)
    throw CLI::ValidationError(fmt::format("{}: '{}' is not a time with its unit, such as 10s", name, text));
  return *time;
}

void add_limits(CLI::App& command, Limits& limits) {
  const auto add = [&](const char* name, std::optional<Duration>& limit, const char* meaning) {
    const auto set = [=, &limit](const std::string& text) { limit = time_of(name, text); };
    command.add_option_function<std::string>(name, set, meaning)->type_name("TIME");
  };
  add("--limit", limits.simulated, "end at this simulated time, with the state of all threads and QPs and status 124");
  add("--wall-limit", limits.wall, "the same after so much real time");
}

void add_grace(CLI::App& command, std::optional<Duration>& grace) {
  const auto set = [&grace](const std::string& text) {
    grace = text == "never" ? std::nullopt : std::optional(time_of("--grace", text));
  };
  command
      .add_option_function<std::string>(
          "--grace", set,
          "when a program failed and the others do nothing but poll, spin and wait for so long in simulated time, the "
          "run ends and says who waited for what (default: 1s); `never`: it goes on")
      ->type_name("TIME");
}

void add_engine(CLI::App& command, EngineOptions& options) {
  std::map<std::string, std::string> kinds;
  for (const std::string kind : kEngineKinds) kinds[kind] = kind;
  add_choice(command, "--engine", options.kind, kinds,
             "the NICs' QP engine: model (default); rtl, the one in SystemVerilog; or lockstep, that one with a "
             "referee, whose objection ends the run with status 3; docs/rtl.md");
  command
      .add_option("--fst", options.fst,
                  "write the signals of the one in SystemVerilog to this file, for GTKWave; where there are hosts, one "
                  "each: waves.fst becomes waves-h0.fst")
      ->type_name("FILE");
}

void add_following(CLI::App& command, FollowOptions& options) {
  command.add_flag("--waterfall", options.waterfall,
                   "say where each work request's time went, stage by stage; docs/waterfall.md");
  auto* perfetto = command.add_option("--perfetto", options.perfetto,
                                      "write the first work requests' stages to this file, for ui.perfetto.dev");
  perfetto->type_name("FILE");
  command.add_option("--perfetto-wqes", options.perfetto_wqes, "how many of them")
      ->check(CLI::Range(1, 1'000'000))
      ->needs(perfetto)
      ->capture_default_str();
}

void add_simulation(CLI::App& command, CommandLine& line) {
  command.add_option("--pcap", line.pcap, "write what the cables carry to this file, as pcapng")->type_name("FILE");
  command
      .add_option("--record", line.record, "record the run in this file, for `rnicsim diff`; audits the counters, too")
      ->type_name("FILE");
  command.add_flag("--audit", line.audit, "recount what the NIC's counters count, and fail when they disagree");
  add_following(command, line.follow);
  add_engine(command, line.options.engine);
  command.add_option("--seed", line.options.seed, "of everything random")->capture_default_str();
  const std::map<std::string, TimeMode> modes{{"sim", TimeMode::simulated}, {"real", TimeMode::real}};
  add_choice(command, "--time", line.options.time, modes,
             "the programs' clock: sim (default) or real, as fast as it goes");
  add_limits(command, line.options.limits);
}

CLI::App& add_run(CLI::App& app, CommandLine& line) {
  CLI::App& run = *app.add_subcommand("run", "run programs on the simulated hosts");
  run.footer(
      "rnicsim run [OPTIONS] -- PROG ARGS runs PROG ARGS on the first host, and PROG ARGS <its address> on the "
      "second.\nThe exit status is the worst of the programs' (128 + signal for one that was killed); 1 when they "
      "stood still, 2 for what cannot be run, 3 when the RTL's referee objects, 124 at a limit, 128 + signal when the "
      "run was ended by one.");
  add_grace(run, line.options.grace);
  add_configuration(run, line.options);
  add_simulation(run, line);
  run.add_option("--json", line.json, "write the results to this file")->type_name("FILE");
  run.add_option("--on", line.arguments.on, "run COMMAND on a host, or on several: 'h[0-3]'; may be repeated")
      ->allow_extra_args(false)
      ->type_name("HOST COMMAND");
  run.add_option("--gdb", line.arguments.gdb, "run that host's programs under gdb")
      ->allow_extra_args(false)
      ->type_name("HOST");
  run.add_option("--valgrind", line.arguments.valgrind, "run that host's programs under valgrind")
      ->allow_extra_args(false)
      ->type_name("HOST");
  return run;
}

CLI::App& add_describe(CLI::App& app, CommandLine& line) {
  CLI::App& describe = *app.add_subcommand("describe", "print every parameter and counter: unit, default, meaning");
  const std::map<std::string, DescribeTopic> topics{{"nic", DescribeTopic::nic},
                                                    {"host", DescribeTopic::host},
                                                    {"topology", DescribeTopic::topology},
                                                    {"counters", DescribeTopic::counters}};
  add_choice(describe, "topic", line.topic, topics, "nic, host, topology or counters; default: all");
  add_configuration(describe, line.options);
  return describe;
}

CLI::App& add_diff(CLI::App& app, CommandLine& line) {
  CLI::App& diff = *app.add_subcommand("diff", "say where two recorded runs first differ");
  diff.add_option("A", line.compared[0], "a file that `run --record` wrote")->required();
  diff.add_option("B", line.compared[1], "another one")->required();
  diff.footer("The exit status is 0 when all events are equal, 1 when they differ, 2 when a file cannot be read.");
  return diff;
}

CLI::App& add_replay(CLI::App& app, replay::ReplayOptions& options) {
  CLI::App& command =
      *app.add_subcommand("replay", "take a real NIC's place in a capture, and compare what ours sends and delivers");
  command.add_option("--wire", options.wire, "a capture of both directions, pcap or pcapng")
      ->required()
      ->type_name("CAPTURE");
  command.add_option("--as", options.as, "the IP address of the NIC to replace")->required()->type_name("ADDRESS");
  command.add_option("--json", options.json, "write the results to this file")->type_name("FILE");
  add_engine(command, options.engine);
  command.footer("The exit status is 0 when all agrees, 1 when something differs, 2 when there is nothing to replay, "
                 "3 when the RTL's referee objects; docs/replay.md.");
  return command;
}

CLI::App& add_bench(CLI::App& app, bench::BenchOptions& options) {
  CLI::App& command =
      *app.add_subcommand("bench", "let agents inside the simulator drive the NICs, as a workload file says");
  command.add_option("WORKLOAD", options.workload, "a TOML file (docs/workloads.md), or the name of one of ours")
      ->required();
  command
      .add_option("--set", options.sets,
                  "a parameter, such as nic.pcie.read_latency=600ns, or a key of the workload, such as "
                  "flow[0].window=8; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  command.add_option("--nic", options.nic, "NIC profile by name, or a TOML file, in place of the workload's");
  command.add_option("--seed", options.seed, "of everything random, in place of the workload's");
  command.add_option("--json", options.json, "write the results to this file")->type_name("FILE");
  add_following(command, options.follow);
  add_engine(command, options.engine);
  add_limits(command, options.limits);
  command.footer(
      "The exit status is 0; 1 when an operation failed or nothing moved, 2 for what cannot be run, 3 when "
      "the RTL's referee objects, 124 at a limit, 128 + signal when the run was ended by one.");
  return command;
}

CLI::App& add_calibrate(CLI::App& app, calibrate::CalibrateOptions& options) {
  CLI::App& command =
      *app.add_subcommand("calibrate", "compare the shipped NICs with published measurements: docs/timing.md");
  command.add_option("ROW", options.rows, "experiments, such as CAL-1; default: all");
  command.add_option("--json", options.json, "write the table to this file")->type_name("FILE");
  command.add_option("--out", options.out, "keep the results of every point, and a CSV a curve, in this folder")
      ->type_name("FOLDER");
  options.jobs = std::max(1u, std::thread::hardware_concurrency());
  command.add_option("--jobs", options.jobs, "runs at a time; they change no result")->check(CLI::Range(1, 256));
  command.footer("The exit status is 0 when every number is within its tolerance, 1 when one is not.");
  return command;
}

// Whether the counters agree with the trace points.
bool passes(const CounterAudit& audit) {
  const auto disagreements = audit.disagreements();
  for (const auto& line : disagreements) fmt::print(stderr, "rnicsim: counters' audit: {}\n", line);
  return disagreements.empty();
}

// `run` and `serve`.
int simulate(CommandLine& line, bool serve) {
  RunOptions& options = line.options;
  if (!line.pcap.empty()) options.pcap = line.pcap;
  if (!line.json.empty()) options.json = line.json;
  if (line.follow.any() && options.time == TimeMode::real)
    throw ConfigError("--waterfall and --perfetto follow simulated time: they do not go with --time=real");
  options.engine.add_to(options.sets);
  const Config config = load_config(options.nic, options.topology, options.sets, options.faults);
  if (!serve) resolve_commands(line.arguments, config.topology, options);
  System system("system", config, options.seed, options.engine.fst);
  if (options.pcap) system.capture(*options.pcap);
  std::optional<Recording> recording;
  if (!line.record.empty()) recording.emplace(system, options, line.record);
  std::optional<CounterAudit> audit;
  if (line.audit || recording) audit.emplace(system);
  Follower follower(system, line.follow);
  const int status =
      serve ? serve_programs(system, options, follower.shown()) : run_programs(system, options, follower.shown());
  system.finish_capture();
  follower.finish();
  if (recording) recording->finish();
  system.engines().check();
  if (audit && !passes(*audit)) return std::max(status, 1);
  return status;
}

// CLI11 would complain of a missing command.
void refuse_unknown_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  if (std::ranges::find(names, argv[1]) != names.end()) return;
  const auto meant = nearest_name(argv[1], names);
  throw ConfigError(fmt::format("there is no command '{}'{}", argv[1],
                                meant ? fmt::format("; did you mean {}?", *meant) : "; see rnicsim --help"));
}

int execute(int argc, char** argv) {
  CommandLine line;
  CLI::App app("A full-system simulator of an RDMA NIC, on which stock verbs programs run.", "rnicsim");
  app.set_version_flag("--version", "rnicsim " RNICSIM_VERSION);
  app.require_subcommand(1);
  CLI::App& run = add_run(app, line);
  CLI::App& serve = *app.add_subcommand("serve", "start the simulated hosts and wait for programs");
  add_configuration(serve, line.options);
  add_simulation(serve, line);
  CLI::App& env = *app.add_subcommand("env", "print the environment with which a program attaches to `serve`");
  env.add_option("host", line.env_host, "the host that the program is to run on")->required();
  CLI::App& describe_command = add_describe(app, line);
  CLI::App& diff = add_diff(app, line);
  CLI::App& replay_command = add_replay(app, line.replay);
  CLI::App& bench_command = add_bench(app, line.bench);
  CLI::App& calibrate_command = add_calibrate(app, line.calibrate);

  refuse_unknown_command(app, argc, argv);

  // What follows -- is the program's own, however much it looks like an option of ours.
  char** const mark = std::find(argv + 1, argv + argc, std::string_view("--"));
  line.arguments.program.assign(std::min(mark + 1, argv + argc), argv + argc);
  try {
    app.parse(static_cast<int>(mark - argv), argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    throw ConfigError(error.what());
  }
  if (mark != argv + argc && !run.parsed()) throw ConfigError("only `run` takes a program after --");

  if (describe_command.parsed()) {
    fmt::print("{}", describe(line.topic, line.options));
    return 0;
  }
  if (replay_command.parsed()) return replay::replay_wire(line.replay);
  if (bench_command.parsed()) return bench::run_bench(line.bench);
  if (calibrate_command.parsed()) return calibrate::run_calibrate(line.calibrate);
  if (diff.parsed()) return diff_traces(line.compared[0], line.compared[1]);
  if (env.parsed()) return print_environment(line.env_host);
  return simulate(line, serve.parsed());
}

// The log's lines do not mix with the terminal's last one.
class EraseProgress final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
  void sink_it_(const spdlog::details::log_msg&) override { progress_line::erase(); }
  void flush_() override {}
};

}  // namespace

int sc_main(int argc, char** argv) {
  unsetenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE");
  spdlog::set_default_logger(spdlog::stderr_color_mt("rnicsim"));
  auto& sinks = spdlog::default_logger()->sinks();
  sinks.insert(sinks.begin(), std::make_shared<EraseProgress>());
  spdlog::set_pattern("rnicsim: %v");
  try {
    return execute(argc, argv);
  } catch (const ConfigError& error) {
    fmt::print(stderr, "rnicsim: {}\n", error.what());
    return kUsageError;
  } catch (const EngineMismatch& error) {
    fmt::print(stderr, "rnicsim: {}\n", error.what());
    return kMismatch;
  } catch (const std::exception& error) {
    fmt::print(stderr, "rnicsim: {}\n", error.what());
    return 1;
  }
}

// What is opened later must not get the numbers of the standard streams, should a caller have closed those.
static void keep_standard_streams() {
  int fd;
  do fd = ::open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= STDERR_FILENO);
  ::close(fd);
}

// In the place of SystemC's own, whose banner is not part of our output.
int main(int argc, char** argv) {
  keep_standard_streams();
  setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);
  return sc_core::sc_elab_and_sim(argc, argv);
}
