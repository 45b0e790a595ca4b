// What a case's run is worth.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/check/case.h"
#include "sim/check/children.h"
#include "sim/check/trace_numbers.h"
#include "sim/recording/cause.h"

namespace rnicsim::sim::check {

enum class Outcome { passed, failed, broken };

// Where a run of a case leaves what it made.
struct RunFiles {
  explicit RunFiles(const std::filesystem::path& folder)
      : trace(folder / "trace"), results(folder / "results.json"), out(folder / "out"), err(folder / "err") {}
  std::filesystem::path trace, results, out, err;
};

// One run of a case: its only one, or that of a seed.
struct CaseRun {
  std::optional<std::uint64_t> seed;
  RunFiles files;
  Ended ended;
};

// What --update would put in an expectation's place.
struct Replacement {
  std::filesystem::path file;
  std::string content;
};

// The first difference between the expected trace and the run, and its cause.
struct Difference {
  std::string a, b;                 // names of the two sides
  std::optional<Divergence> first;  // nullopt: statistics differ, not events
  Cause cause;
};

struct Verdict {
  std::string name;
  Outcome outcome = Outcome::passed;
  // Each a line, and lines that tell more.
  std::vector<std::string> findings;
  // The same of a case that passed.
  std::vector<std::string> notes;
  std::optional<Difference> difference;
  // For each seed; empty unless a history asks.
  std::vector<std::pair<std::uint64_t, Numbers>> numbers;
  // That would make it pass, as far as files can.
  std::vector<Replacement> replacements;
  bool is_mended = false;  // by those
  double seconds = 0;

  // The findings' first line.
  std::string headline() const;
};

Verdict broken(const std::string& name, const std::string& why);

struct JudgeOptions {
  bool updating = false;       // an expectation that is not there, or that cannot be read, is a new one
  bool keeps_numbers = false;  // fills Verdict::numbers
};
// `runs`: in the order of the case's run_seeds().
Verdict judge(const Case& of, const std::vector<CaseRun>& runs, const JudgeOptions& options);

}  // namespace rnicsim::sim::check
