// SPDX-License-Identifier: Apache-2.0
// A case of `rnicsim check`: the run, and the results that the run must have. Manual: docs/check.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "model/base/units.h"
#include "sim/trace_file/format.h"
#include "sim/trace_file/loose_diff.h"

namespace rnicsim::sim::check {

inline constexpr std::uint64_t kCaseSchema = 1;

// A number in the unit of results (times in ps, rates in b/s), or the name of another value.
using Operand = std::variant<double, std::string>;

// Largest allowed deviation: absolute (in the value's unit) or relative (fraction of 1).
struct Margin {
  double absolute = 0;
  double relative = 0;
  double allowed(double expected) const;
};

// Level of comparison of a run with its expectation.
enum class Level {
  exact,        // the same events, at times within the tolerance
  order,        // the same events of each QP in the same order; no times
  statistical,  // rates and latencies over several seeds
};
const char* to_string(Level level);
inline constexpr std::size_t kLevels = 3;

// A condition on a value, or on each value that matches a name with '*'.
struct Property {
  enum class Relation { equals, below, at_most, above, at_least };
  std::string value;
  Relation relation;
  Operand operand;
  Margin margin;      // only for `equals`
  std::string where;  // "property[1].below"
};

struct ExpectedTrace {
  std::filesystem::path file;
  TimeTolerance times;
  std::vector<EventKind> left_out;
};

struct MayDiffer {
  std::string value;
  std::optional<Margin> margin;  // nullopt: any deviation
};

struct ExpectedResults {
  std::filesystem::path file;
  std::vector<MayDiffer> may_differ;  // the last entry that matches counts
};

// Level `statistical`: the numbers expected of each seed's run.
struct ExpectedStatistics {
  std::filesystem::path file;
  std::vector<std::uint64_t> seeds;  // at least two; the first is the case's seed
  std::vector<std::string> values;   // names of the numbers to compare; empty: all
  Margin tolerance;
  double confidence = 0.95;           // confidence level for all numbers together
  std::vector<MayDiffer> may_differ;  // the last entry that matches counts
};

// A run by `rnicsim run`.
struct Programs {
  std::vector<std::string> words;                       // program and arguments, as after --
  std::vector<std::pair<std::string, std::string>> on;  // host, command line
};
// A run by `rnicsim bench`.
struct Workload {
  std::string name;
};
// Words of an external simulator that are replaced: by the path for its trace, the path for its results, the seed.
inline constexpr auto kTraceWord = "@trace", kResultsWord = "@results", kSeedWord = "@seed";
struct Simulator {
  std::vector<std::string> words;
};

struct Case {
  std::string name;
  std::string title;
  std::filesystem::path file;
  std::filesystem::path folder;  // folder of the case's file; start of relative paths in the file
  std::variant<Programs, Workload, Simulator> run;
  std::optional<std::string> nic, host, topology, engine;
  std::optional<std::uint64_t> seed;
  std::vector<std::string> sets, faults;
  std::chrono::milliseconds limit{60'000};  // wall time
  std::optional<Duration> simulated_limit;  // simulated time at which the run ends
  int status = 0;
  Level level = Level::exact;
  std::optional<ExpectedTrace> trace;
  std::optional<ExpectedStatistics> statistics;
  std::optional<ExpectedResults> results;
  std::vector<Property> properties;

  bool needs_results() const { return results || !properties.empty(); }
  bool is_statistical() const { return statistics && level == Level::statistical; }
  bool needs_trace() const { return is_statistical() || (trace && level != Level::statistical); }
  // Seeds of the case's runs: one, or the seeds of its statistics. nullopt: the default seed.
  std::vector<std::optional<std::uint64_t>> run_seeds() const;
};

// ConfigError: not a valid case; the message has the file and the key's path.
Case read_case(const std::filesystem::path& file, const std::string& name);

// ConfigError: the case has no expectation for this level. A case with only properties and results accepts any level.
void set_level(Case& of, Level level);

// Finds the cases of a folder, NAME.toml or NAME/case.toml, in the order of their names. ConfigError: the folder cannot
// be read, has no case, or has two cases of one name.
struct CaseFile {
  std::string name;
  std::filesystem::path file;
};
std::vector<CaseFile> find_cases(const std::filesystem::path& folder);

}  // namespace rnicsim::sim::check
