// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/options.h"

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "model/abi/attach.h"
#include "sim/config/config_error.h"

namespace rnicsim::sim {

void add_configuration(CLI::App& command, RunOptions& options) {
  command.add_option("--nic", options.nic, "NIC profile by name, or a TOML file")
      ->capture_default_str()
      ->type_name("NIC");
  add_host_profile(command, options.host);
  command.add_option("--topology", options.topology, "topology by name (star:8, fat-tree:4), or a TOML file")
      ->capture_default_str()
      ->type_name("TOPOLOGY");
  add_sets(command, options.sets, "set a parameter, such as nic.pcie.read_latency=600ns; may be repeated");
  add_faults(command, options.faults);
}

void add_sets(CLI::App& command, std::vector<std::string>& sets, const char* meaning) {
  command.add_option("--set", sets, meaning)->allow_extra_args(false)->type_name("KEY=VALUE");
}

void add_faults(CLI::App& command, std::vector<std::string>& faults) {
  command
      .add_option("--fault", faults,
                  "a fault of the cables. Action: drop, corrupt, duplicate, delay (by=2us) or reorder (by=FRAMES, "
                  "limit=10us), with a probability. Keys that select frames: host, opcode, qp, psn, nth, count. "
                  "Example: drop=1e-3,host=h0,opcode=ACKNOWLEDGE. May be repeated; docs/faults.md")
      ->allow_extra_args(false)
      ->type_name("ACTION[=PROBABILITY][,KEY=VALUE]...");
}

std::string wrong_seed(const std::string& text) {
  std::int64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error == std::errc{} && end == text.data() + text.size() && seed >= 0) return {};
  return fmt::format("0..{} is needed, not '{}'", INT64_MAX, shown(text));
}

Duration time_of(const char* option, const std::string& text) {
  const auto time = parse_duration(text);
  if (!time) throw CLI::ValidationError(fmt::format("{}: '{}' is not a time with its unit, such as 10s", option, text));
  if (time->ps <= 0) throw CLI::ValidationError(fmt::format("{}: '{}' is not a time above 0", option, text));
  return *time;
}

void add_limits(CLI::App& command, Limits& limits) {
  const auto add = [&](const char* name, std::optional<Duration>& limit, const char* meaning) {
    const auto set = [=, &limit](const std::string& text) { limit = time_of(name, text); };
    command.add_option_function<std::string>(name, set, meaning)->type_name("TIME");
  };
  add("--limit", limits.simulated,
      "end the run at this simulated time: print the state of all threads and QPs; exit status 124");
  add("--wall-limit", limits.wall, "end the run in the same way after this real time");
}

void add_engine(CLI::App& command, EngineOptions& options) {
  std::map<std::string, std::string> kinds;
  for (const std::string kind : kEngineKinds) kinds[kind] = kind;
  add_choice(command, "--engine", options.kind, kinds,
             "QP engine of the NICs: model (default), in C++; rtl, in SystemVerilog; or lockstep, which compares the "
             "SystemVerilog engine with the C++ engine, and ends the run at a difference with status 3; docs/rtl.md");
  command
      .add_option("--fst", options.fst,
                  "write the signals of the SystemVerilog engine to this file, for GTKWave; one file for each host: "
                  "waves.fst becomes waves-h0.fst")
      ->type_name("FILE");
}

namespace {

// Adds --record, --record-level, --record-software, --record-calls, --record-tlps.
void add_recording(CLI::App& command, ObserverOptions& observers) {
  auto* record = command.add_option("--record", observers.record,
                                    "record the run in this file, for `rnicsim diff`; also audits the counters");
  record->type_name("FILE");
  add_choice(command, "--record-level", observers.recorded.level,
             {{"verbs", RecordLevel::verbs}, {"all", RecordLevel::all}},
             "verbs: record no packets and frames; all (default): all events of the devices")
      ->needs(record);
  command
      .add_flag("--record-software", observers.recorded.software,
                "also record the software's accesses, for `rnicsim replay FILE`: requests to the devices, registered "
                "memory, and the bytes that a device reads there")
      ->needs(record);
  command
      .add_flag("--record-calls", observers.recorded.calls,
                "also record calls of the verbs library: commands with their arguments and answers, posted work "
                "requests, polled completions")
      ->needs(record);
  command.add_flag("--record-tlps", observers.recorded.tlps, "also record the TLPs of the devices' PCIe links")
      ->needs(record);
}

// Adds --check, --check-poison, --check-owner-delay.
void add_driver_checks(CLI::App& command, ObserverOptions& observers) {
  auto* check = command.add_flag("--check", observers.check,
                                 "report mistakes of the drivers at their first wrong access, and fail if there are "
                                 "any; docs/driver-check.md");
  command
      .add_flag("--check-poison", observers.check_params.poison,
                "fill the place of a CQE with a pattern until the device writes the CQE: shows a driver that reads "
                "before the owner bit is valid")
      ->needs(check);
  const auto delay = [&observers](const std::string& text) {
    observers.check_params.owner_delay = time_of("--check-owner-delay", text);
  };
  command
      .add_option_function<std::string>("--check-owner-delay", delay,
                                        "write the owner bit of a CQE or EQE this much later than its other bytes")
      ->needs(check)
      ->type_name("TIME");
}

// Adds --waterfall, --perfetto, --perfetto-wqes, --perfetto-samples.
void add_follow_options(CLI::App& command, FollowOptions& options) {
  command.add_flag("--waterfall", options.waterfall,
                   "print the time that work requests spent in each stage; docs/waterfall.md");
  auto* perfetto = command.add_option("--perfetto", options.perfetto,
                                      "write the stages of the first work requests, and congestion over time, to this "
                                      "file, for ui.perfetto.dev");
  perfetto->type_name("FILE");
  command.add_option("--perfetto-wqes", options.perfetto_wqes, "work requests in the file of --perfetto")
      ->check(CLI::Range(1, 1'000'000))
      ->needs(perfetto)
      ->capture_default_str();
  command
      .add_option("--perfetto-samples", options.perfetto_samples,
                  "most values of congestion control, queues and pauses in the file of --perfetto; 0: none")
      ->check(CLI::Range(0, 100'000'000))
      ->needs(perfetto)
      ->capture_default_str();
}

}  // namespace

void add_observers(CLI::App& command, ObserverOptions& observers) {
  const auto choose = [&observers](const std::vector<std::string>& texts) {
    for (const auto& text : texts) observers.log.push_back(parse_log_choice(text));
  };
  command
      .add_option_function<std::vector<std::string>>(
          "--log", choose,
          fmt::format(
              "log level on stderr: off, error, warn (default), info, debug or trace, for all blocks or for one "
              "block ({}); may be repeated",
              fmt::join(log_blocks(), ", ")))
      ->allow_extra_args(false)
      ->type_name("LEVEL[:BLOCK]");
  command.add_option("--pcap", observers.pcap, "capture the frames on the cables in this file, as pcapng")
      ->type_name("FILE");
  add_recording(command, observers);
  command.add_flag("--audit", observers.audit,
                   "audit the counters: compare them with the trace events, and fail if they disagree");
  add_driver_checks(command, observers);
  add_follow_options(command, observers.follow);
}

void add_json(CLI::App& command, std::string& path) {
  command
      .add_option("--json", path,
                  "write the results to this file; -: to standard output, and all other output to stderr")
      ->type_name("FILE");
}

void refuse_simulated_host(const char* command) {
  const char* preload = std::getenv("LD_PRELOAD");
  const char* host = std::getenv(abi::kHostVariable);
  if (host == nullptr || preload == nullptr) return;
  if (std::string_view(preload).find("librnicsim_os.so") == std::string_view::npos) return;
  throw ConfigError(fmt::format(
      "{} needs real time, but this shell runs on the simulated host {}: write `LD_PRELOAD=` before the command, "
      "or use another terminal",
      command, host));
}

}  // namespace rnicsim::sim
