// Options that several commands have.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/config/engine_params.h"
#include "sim/observers.h"
#include "sim/run_options.h"
#include "sim/watch.h"

namespace rnicsim::sim {

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

// --nic, --host-profile, --topology, --set, --fault
void add_configuration(CLI::App& command, RunOptions& options);
// --host-profile
template <class Name>
void add_host_profile(CLI::App& command, Name& host) {
  command
      .add_option("--host-profile", host,
                  "what the hosts cost, by name, or a TOML file, in the place of what the NIC's profile, the topology "
                  "or the workload names")
      ->type_name("PROFILE");
}
// --set, --fault
void add_sets(CLI::App& command, std::vector<std::string>& sets, const char* meaning);
void add_faults(CLI::App& command, std::vector<std::string>& faults);
// --limit, --wall-limit
void add_limits(CLI::App& command, Limits& limits);
// --engine, --fst
void add_engine(CLI::App& command, EngineOptions& options);
// --log, --pcap, --record, --audit, --check, --check-poison, --check-owner-delay, --waterfall, --perfetto,
// --perfetto-wqes, --perfetto-samples
void add_observers(CLI::App& command, ObserverOptions& options);
// Empty: as a workload's seed may be. CLI11 by itself takes -1 for 2^64-1, all above for it, too, and nothing for 0.
std::string wrong_seed(const std::string& text);
// --seed
template <class Seed>
CLI::Option* add_seed(CLI::App& command, Seed& seed, const char* meaning) {
  return command.add_option("--seed", seed, meaning)->check(wrong_seed);
}
// --json
void add_json(CLI::App& command, std::string& path);
// ConfigError in a program of a simulated host, where time is not the user's.
void refuse_simulated_host(const char* command);
// A time with its unit; CLI::ValidationError names the option.
Duration time_of(const char* option, const std::string& text);

}  // namespace rnicsim::sim
