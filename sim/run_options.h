// SPDX-License-Identifier: Apache-2.0
// Options of `rnicsim run` and `rnicsim serve`, checked and expanded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/base/units.h"
#include "sim/config/engine_params.h"
#include "sim/config/topology.h"
#include "sim/watch.h"

namespace rnicsim::sim {

// each_look: as `simulated`, but each look of a polling program takes a scheduling turn. Slower, with the same results.
enum class TimeMode { simulated, each_look, real };

// One program on one host.
struct HostCommand {
  std::uint32_t host;                // index in the topology
  std::vector<std::string> argv;     // argv[0] as typed
  std::filesystem::path executable;  // found on PATH
};

struct RunOptions {
  std::string nic = "cx5-100g";
  std::string host;  // name of a host profile; empty: the NIC's or the topology's profile
  std::string topology = "back-to-back";
  std::vector<std::string> sets;    // "key=value"
  std::vector<std::string> faults;  // "drop=1e-3,host=h0"
  EngineOptions engine;
  std::uint64_t seed = 1;
  TimeMode time = TimeMode::simulated;
  std::vector<HostCommand> commands;  // in start order
  std::set<std::uint32_t> outside;    // hosts at the end of a live wire
  std::set<std::uint32_t> gdb_hosts;
  std::set<std::uint32_t> valgrind_hosts;
  Limits limits;
  // Simulated time for which programs may only wait after another program failed; nullopt: no limit.
  std::optional<Duration> grace{Duration{1'000'000'000'000}};
  Duration start_gap{10'000'000'000};  // simulated time between two starts: servers listen before clients connect
};

// Arguments as written on the command line.
struct RunArguments {
  std::vector<std::pair<std::string, std::string>> on;  // hosts, command
  std::vector<std::string> program;                     // after --
  std::vector<std::string> gdb;
  std::vector<std::string> valgrind;
  std::vector<std::string> wires;
};

// Splits words and quotes as a POSIX shell does, without running a shell. ConfigError: the text needs a shell.
std::vector<std::string> split_command(const std::string& text);

// Fills commands, gdb_hosts and valgrind_hosts. Finds and checks each program (program_check.h). ConfigError.
void resolve_commands(const RunArguments& arguments, const Topology& topology, RunOptions& options);

}  // namespace rnicsim::sim
