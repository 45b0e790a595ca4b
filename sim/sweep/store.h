// The folder of a sweep: what was to be run, and what came of each run so far.
//
//   plan.json           the plan, the command that made it, and the files that its runs are configured by
//   points/12-1.json    of point 12 with seed 1, what `bench --json` or `replay --json` writes less what differs from
//                       run to run, and its CRC-32
//   points/12-1.error   in its place: why there is none
//   results.json        all in one, with the means over the seeds
//   results.csv         a line a run
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/json.h"
#include "sim/sweep/plan.h"

namespace rnicsim::sim::sweep {

// Each member: ConfigError, what cannot be read or written, and why.
class Store {
 public:
  // A new folder, or one of the same plan: what it has is kept. ConfigError: it has another sweep, or one of files that
  // have changed since.
  Store(std::filesystem::path folder, SweepPlan plan, const std::vector<std::string>& invocation);
  // A folder that there is, to be looked at.
  explicit Store(std::filesystem::path folder);

  // To go on. ConfigError: what its runs are configured by has changed.
  void check_files() const;

  const SweepPlan& plan() const { return plan_; }
  const std::filesystem::path& folder() const { return folder_; }
  const std::vector<std::string>& invocation() const { return invocation_; }

  bool done(const Run& run) const;
  std::optional<std::string> failure(const Run& run) const;
  Json results(const Run& run) const;
  // "points/12-1.json"
  static std::string file_of(const Run& run);

  void put(const Run& run, const std::string& results) const;
  void put_failure(const Run& run, const std::string& why) const;
  // Into a file of the folder, which is there when it is whole.
  void write(const std::string& name, const std::string& text) const;

 private:
  const std::filesystem::path folder_;
  SweepPlan plan_;
  std::vector<std::string> invocation_;
  Json files_;
};

}  // namespace rnicsim::sim::sweep
