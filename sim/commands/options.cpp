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
  add_sets(command, options.sets, "a parameter, such as nic.pcie.read_latency=600ns; may be repeated");
  add_faults(command, options.faults);
}

void add_sets(CLI::App& command, std::vector<std::string>& sets, const char* meaning) {
  command.add_option("--set", sets, meaning)->allow_extra_args(false)->type_name("KEY=VALUE");
}

void add_faults(CLI::App& command, std::vector<std::string>& faults) {
  command
      .add_option("--fault", faults,
                  "what the cables do to frames: drop, corrupt, duplicate, delay (by=2us) or reorder (by=FRAMES, "
                  "limit=10us), with which probability, and to which frames: host=, opcode=, qp=, psn=, nth=, count=; "
                  "such as drop=1e-3,host=h0,opcode=ACKNOWLEDGE; may be repeated; docs/faults.md")
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
  if (time->ps <= 0) throw CLI::ValidationError(fmt::format("{}: '{}' is not longer than 0", option, text));
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

void add_observers(CLI::App& command, ObserverOptions& observers) {
  const auto choose = [&observers](const std::vector<std::string>& texts) {
    for (const auto& text : texts) observers.log.push_back(parse_log_choice(text));
  };
  command
      .add_option_function<std::vector<std::string>>(
          "--log", choose,
          fmt::format("say on stderr what happens: off, error, warn (default), info, debug or trace, of all blocks or "
                      "of one ({}); may be repeated",
                      fmt::join(log_blocks(), ", ")))
      ->allow_extra_args(false)
      ->type_name("LEVEL[:BLOCK]");
  command.add_option("--pcap", observers.pcap, "write what the cables carry to this file, as pcapng")
      ->type_name("FILE");
  auto* record = command.add_option("--record", observers.record,
                                    "record the run in this file, for `rnicsim diff`; audits the counters, too");
  record->type_name("FILE");
  command
      .add_flag("--record-software", observers.record_software,
                "record what the software does at the devices, too, for `rnicsim replay FILE`: requests to the "
                "devices, registered memory, and what lies there when a device reads")
      ->needs(record);
  command.add_flag("--audit", observers.audit, "recount what the NIC's counters count, and fail when they disagree");
  auto* check = command.add_flag("--check", observers.check,
                                 "say which mistakes the drivers make, at their first wrong accesses, and fail when "
                                 "they make any; docs/driver-check.md");
  command
      .add_flag("--check-poison", observers.check_params.poison,
                "a CQE's place holds a pattern until the CQE is there: shows what reads it before its owner bit")
      ->needs(check);
  const auto delay = [&observers](const std::string& text) {
    observers.check_params.owner_delay = time_of("--check-owner-delay", text);
  };
  command
      .add_option_function<std::string>("--check-owner-delay", delay,
                                        "the owner bit of a CQE or EQE lands so much later than the rest of it")
      ->needs(check)
      ->type_name("TIME");
  FollowOptions& options = observers.follow;
  command.add_flag("--waterfall", options.waterfall,
                   "say where each work request's time went, stage by stage; docs/waterfall.md");
  auto* perfetto = command.add_option("--perfetto", options.perfetto,
                                      "write the first work requests' stages, and congestion over time, to this file, "
                                      "for ui.perfetto.dev");
  perfetto->type_name("FILE");
  command.add_option("--perfetto-wqes", options.perfetto_wqes, "how many of them")
      ->check(CLI::Range(1, 1'000'000))
      ->needs(perfetto)
      ->capture_default_str();
  command
      .add_option("--perfetto-samples", options.perfetto_samples,
                  "at most so many values of congestion control, queues and pauses; 0: none")
      ->check(CLI::Range(0, 100'000'000))
      ->needs(perfetto)
      ->capture_default_str();
}

void add_json(CLI::App& command, std::string& path) {
  command.add_option("--json", path, "write the results to this file; -: to standard output, and all else to stderr")
      ->type_name("FILE");
}

void refuse_simulated_host(const char* command) {
  const char* preload = std::getenv("LD_PRELOAD");
  const char* host = std::getenv(abi::kHostVariable);
  if (host == nullptr || preload == nullptr) return;
  if (std::string_view(preload).find("librnicsim_os.so") == std::string_view::npos) return;
  throw ConfigError(
      fmt::format("{} wants this machine's time, and this is a program of the simulated host {}: put "
                  "`LD_PRELOAD=` before it, or use another terminal",
                  command, host));
}

}  // namespace rnicsim::sim
