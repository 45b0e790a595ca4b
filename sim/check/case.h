// A case of `rnicsim check`: what runs, and what must come of it. docs/check.md is its manual.
#pragma once

#include <array>
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

struct ExpectedResults {
  struct Exception {
    std::string value;
    std::optional<Margin> margin;  // nullopt: it may be anything
  };
  std::filesystem::path file;
  std::vector<Exception> may_differ;  // the last one that fits counts
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
inline constexpr auto kTraceWord = "@trace", kResultsWord = "@results";
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
  std::optional<ExpectedTrace> trace;
  std::optional<ExpectedResults> results;
  std::vector<Property> properties;

  bool needs_results() const { return results || !properties.empty(); }
};

// ConfigError: what is wrong, with the file and the key's path.
Case read_case(const std::filesystem::path& file, const std::string& name);

// Where a case stands: NAME.toml or NAME/case.toml, in the order of the names. ConfigError: the folder cannot be read,
// or holds none, or a name stands for two.
struct CaseFile {
  std::string name;
  std::filesystem::path file;
};
std::vector<CaseFile> find_cases(const std::filesystem::path& folder);

}  // namespace rnicsim::sim::check
