// SPDX-License-Identifier: Apache-2.0
// Compares a case's runs with the expectation and gives a verdict.
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
#include "sim/trace_file/cause.h"

namespace rnicsim::sim::check {

enum class Outcome { passed, failed, broken };

// Files that a run of a case writes.
struct RunFiles {
  explicit RunFiles(const std::filesystem::path& folder)
      : trace(folder / "trace"), results(folder / "results.json"), out(folder / "out"), err(folder / "err") {}
  std::filesystem::path trace, results, out, err;
};

// A run of a case: the only run, or the run of one seed.
struct CaseRun {
  std::optional<std::uint64_t> seed;
  RunFiles files;
  Ended ended;
};

// New content for a file of the expectation, to be written by --update.
struct Replacement {
  std::filesystem::path file;
  std::string content;
};

// The first difference between the expected trace and the run, and its cause.
struct Difference {
  std::string a, b;                 // names of the two sides
  std::optional<Divergence> first;  // nullopt: the statistics differ, not events
  Cause cause;
};

struct Verdict {
  std::string name;
  Outcome outcome = Outcome::passed;
  // Reasons of a failure; each begins with a line of its own, and may have further lines.
  std::vector<std::string> findings;
  // Remarks on a case that passed; same form.
  std::vector<std::string> notes;
  std::optional<Difference> difference;
  // Numbers by seed; empty unless a history is kept.
  std::vector<std::pair<std::uint64_t, Numbers>> numbers;
  // Files that would remove the findings which depend on files of the expectation.
  std::vector<Replacement> replacements;
  bool is_mended = false;  // the replacements suffice for the case to pass
  double seconds = 0;

  // First line of the findings.
  std::string headline() const;
};

Verdict broken(const std::string& name, const std::string& why);

struct ValidatorOptions {
  bool updating = false;       // a missing or unreadable expectation is created
  bool keeps_numbers = false;  // fills Verdict::numbers
};
// `runs`: one for each of the case's run_seeds(), in that order.
Verdict validate(const Case& of, const std::vector<CaseRun>& runs, const ValidatorOptions& options);

}  // namespace rnicsim::sim::check
