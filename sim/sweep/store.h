// SPDX-License-Identifier: Apache-2.0
// Folder of a sweep: the plan, and the results so far.
//
//   plan.json           the plan, its command line, and the files that configure the runs
//   points/12-1.json    results of point 12 with seed 1, as `bench --json` or `replay --json` writes them, without
//                       values that vary between equal runs, and with a CRC-32
//   points/12-1.error   instead of the .json file: the reason of a failure
//   results.json        all results, with means over the seeds
//   results.csv         one line for each run
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/results/json.h"
#include "sim/sweep/plan.h"

namespace rnicsim::sim::sweep {

// Every member function: ConfigError when a file cannot be read or written.
class Store {
 public:
  // Makes a new folder, or opens a folder of the same plan and keeps its results. ConfigError: the folder belongs to
  // another sweep, or files that configure the runs have changed since.
  Store(std::filesystem::path folder, SweepPlan plan, const std::vector<std::string>& invocation);
  // Opens an existing folder to read it.
  explicit Store(std::filesystem::path folder);

  // Call before further runs. ConfigError: files that configure the runs have changed.
  void check_files() const;

  const SweepPlan& plan() const { return plan_; }
  const std::filesystem::path& folder() const { return folder_; }
  const std::vector<std::string>& invocation() const { return invocation_; }

  bool done(const Run& run) const;
  std::optional<std::string> failure(const Run& run) const;
  Json results(const Run& run) const;
  // Name of the run's result file: "points/12-1.json".
  static std::string file_of(const Run& run);

  void put(const Run& run, const std::string& results) const;
  void put_failure(const Run& run, const std::string& why) const;
  // Writes a file of the folder, which gets its name when it is complete.
  void write(const std::string& name, const std::string& text) const;

 private:
  const std::filesystem::path folder_;
  SweepPlan plan_;
  std::vector<std::string> invocation_;
  Json files_;
};

}  // namespace rnicsim::sim::sweep
