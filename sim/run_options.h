// What a person asked of `rnicsim run` and `rnicsim serve`, checked and expanded.
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

// each_look: simulated, and each look of a polling program takes a turn. Slow; nothing else is different.
enum class TimeMode { simulated, each_look, real };

// One program on one host.
struct HostCommand {
  std::uint32_t host;                // index in the topology
  std::vector<std::string> argv;     // argv[0] as typed
  std::filesystem::path executable;  // what PATH makes of it
};

struct RunOptions {
  std::string nic = "cx5-100g";
  std::string host;  // a profile; empty: the NIC's or the topology's
  std::string topology = "back-to-back";
  std::vector<std::string> sets;    // "key=value"
  std::vector<std::string> faults;  // "drop=1e-3,host=h0"
  EngineOptions engine;
  std::uint64_t seed = 1;
  TimeMode time = TimeMode::simulated;
  std::vector<HostCommand> commands;  // in the order in which they start
  std::set<std::uint32_t> outside;    // hosts at the end of a live wire
  std::set<std::uint32_t> gdb_hosts;
  std::set<std::uint32_t> valgrind_hosts;
  Limits limits;
  // How long, in simulated time, programs may only wait after another failed; nullopt: for ever.
  std::optional<Duration> grace{Duration{1'000'000'000'000}};
  Duration start_gap{10'000'000'000};  // simulated, between one start and the next: servers listen first
};

// As it stands on the command line.
struct RunArguments {
  std::vector<std::pair<std::string, std::string>> on;  // hosts, command
  std::vector<std::string> program;                     // after --
  std::vector<std::string> gdb;
  std::vector<std::string> valgrind;
  std::vector<std::string> wires;
};

// Words and quotes as a POSIX shell takes them, without a shell; ConfigError for what only a shell could do.
std::vector<std::string> split_command(const std::string& text);

// Fills commands, gdb_hosts and valgrind_hosts. Each program is found and checked (program_check.h). ConfigError.
void resolve_commands(const RunArguments& arguments, const Topology& topology, RunOptions& options);

}  // namespace rnicsim::sim
