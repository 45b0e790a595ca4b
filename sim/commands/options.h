// SPDX-License-Identifier: Apache-2.0
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

// An option whose values have names. The messages of CLI11's own transformer show the numbers of enumerators.
template <class Choice>
CLI::Option* add_choice(CLI::App& command, const char* name, Choice& choice,
                        const std::map<std::string, Choice>& choices, const char* meaning) {
  std::vector<std::string> names;
  for (const auto& [text, value] : choices) names.push_back(text);
  const auto joined = fmt::format("{}", fmt::join(names, "|"));
  const auto choose = [=, &choice](const std::string& text) {
    const auto found = choices.find(text);
    if (found == choices.end()) throw CLI::ValidationError(fmt::format("{}: '{}' is none of {}", name, text, joined));
    choice = found->second;
  };
  return command.add_option_function<std::string>(name, choose, meaning)->type_name(joined);
}

// Adds --nic, --host-profile, --topology, --set, --fault.
void add_configuration(CLI::App& command, RunOptions& options);
// Adds --host-profile.
template <class Name>
void add_host_profile(CLI::App& command, Name& host) {
  command
      .add_option(
          "--host-profile", host,
          "host profile (costs of CPU and kernel) by name, or a TOML file; overrides the profile that the NIC's "
          "profile, the topology or the workload names")
      ->type_name("PROFILE");
}
// Add --set and --fault.
void add_sets(CLI::App& command, std::vector<std::string>& sets, const char* meaning);
void add_faults(CLI::App& command, std::vector<std::string>& faults);
// Adds --limit, --wall-limit.
void add_limits(CLI::App& command, Limits& limits);
// Adds --engine, --fst.
void add_engine(CLI::App& command, EngineOptions& options);
// Adds --log, --pcap, --record, --record-level, --record-software, --record-calls, --record-tlps, --audit, --check,
// --check-poison, --check-owner-delay, --waterfall, --perfetto, --perfetto-wqes, --perfetto-samples.
void add_observers(CLI::App& command, ObserverOptions& options);
// Returns a message if `text` is no seed, 0..INT64_MAX; else an empty string. CLI11's own conversion accepts -1 as
// 2^64-1, all larger numbers as 2^64-1 too, and an empty text as 0.
std::string wrong_seed(const std::string& text);
// Adds --seed.
template <class Seed>
CLI::Option* add_seed(CLI::App& command, Seed& seed, const char* meaning) {
  return command.add_option("--seed", seed, meaning)->check(wrong_seed);
}
// Adds --json.
void add_json(CLI::App& command, std::string& path);
// ConfigError in a program of a simulated host: such a program runs in simulated time, not in the user's time.
void refuse_simulated_host(const char* command);
// Parses a time with its unit. CLI::ValidationError, with the name of the option.
Duration time_of(const char* option, const std::string& text);

}  // namespace rnicsim::sim
