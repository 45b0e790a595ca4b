// A case of `rnicsim check`: what runs, and what must come of it. docs/check.md is its manual.
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
#include "sim/recording/format.h"
#include "sim/recording/loose_diff.h"

namespace rnicsim::sim::check {

inline constexpr std::uint64_t kCaseSchema = 1;

// A number as results hold it (times in ps, rates in b/s), or the name of another value.
using Operand = std::variant<double, std::string>;

// "No more than so far": of 1, or in the value's unit.
struct Margin {
  double absolute = 0;
  double relative = 0;
  double allowed(double expected) const;
};

// How what happened is compared with what is expected.
enum class Level {
  exact,        // the same events, at times that differ no more than they may
  order,        // the same events of each QP in the same order
  statistical,  // rates and latencies of several seeds
};
const char* to_string(Level level);
inline constexpr std::size_t kLevels = 3;

// What must hold of a value, or of each that a name with '*' stands for.
struct Property {
  enum class Relation { equals, below, at_most, above, at_least };
  std::string value;
  Relation relation;
  Operand operand;
  Margin margin;      // of equals
  std::string where;  // "property[1].below"
};

struct ExpectedTrace {
  std::filesystem::path file;
  TimeTolerance times;
  std::vector<EventKind> left_out;
};

struct MayDiffer {
  std::string value;
  std::optional<Margin> margin;  // nullopt: it may be anything
};

struct ExpectedResults {
  std::filesystem::path file;
  std::vector<MayDiffer> may_differ;  // the last one that fits counts
};

// The level `statistical`: the expected numbers of each seed's run.
struct ExpectedStatistics {
  std::filesystem::path file;
  std::vector<std::uint64_t> seeds;  // two or more; the first is the case's
  std::vector<std::string> values;   // names of numbers that are compared; empty: all
  Margin tolerance;
  double confidence = 0.95;           // for all numbers together
  std::vector<MayDiffer> may_differ;  // the last one that fits counts
};

// `rnicsim run`
struct Programs {
  std::vector<std::string> words;                       // as after --
  std::vector<std::pair<std::string, std::string>> on;  // host, command
};
// `rnicsim bench`
struct Workload {
  std::string name;
};
// A program that simulates by itself; these in its words are where it is to write.
inline constexpr auto kTraceWord = "@trace", kResultsWord = "@results", kSeedWord = "@seed";
struct Simulator {
  std::vector<std::string> words;
};

struct Case {
  std::string name;
  std::string title;
  std::filesystem::path file;
  std::filesystem::path folder;  // of the file: what paths in it are relative to
  std::variant<Programs, Workload, Simulator> run;
  std::optional<std::string> nic, host, topology, engine;
  std::optional<std::uint64_t> seed;
  std::vector<std::string> sets, faults;
  std::chrono::milliseconds limit{60'000};  // of real time
  std::optional<Duration> simulated_limit;  // nor does it go on past this simulated time
  int status = 0;
  Level level = Level::exact;
  std::optional<ExpectedTrace> trace;
  std::optional<ExpectedStatistics> statistics;
  std::optional<ExpectedResults> results;
  std::vector<Property> properties;

  bool needs_results() const { return results || !properties.empty(); }
  bool is_statistical() const { return statistics && level == Level::statistical; }
  bool needs_trace() const { return is_statistical() || (trace && level != Level::statistical); }
  // One, or those of its statistics; nullopt: the default.
  std::vector<std::optional<std::uint64_t>> run_seeds() const;
};

// ConfigError: what is wrong, with the file and the key's path.
Case read_case(const std::filesystem::path& file, const std::string& name);

// ConfigError: the case says nothing to be compared on this level. Cases that have properties and results alone take
// any.
void set_level(Case& of, Level level);

// Where a case stands: NAME.toml or NAME/case.toml, in the order of the names. ConfigError: the folder cannot be read,
// or holds none, or a name stands for two.
struct CaseFile {
  std::string name;
  std::filesystem::path file;
};
std::vector<CaseFile> find_cases(const std::filesystem::path& folder);

}  // namespace rnicsim::sim::check
