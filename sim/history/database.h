// SPDX-License-Identifier: Apache-2.0
// History of checks by label: an SQLite database in a folder. Manual: docs/check.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rnicsim::sim::history {

class Connection;

// Result of one case in one check.
struct CaseResult {
  std::string name;
  std::string outcome;                                                           // "passed", "failed" or "broken"
  std::string message;                                                           // empty if the case passed
  std::vector<std::pair<std::uint64_t, std::map<std::string, double>>> numbers;  // by seed
};

// Values of a number at one label, over the seeds.
struct Sample {
  std::size_t label;  // index in Contents::labels
  double mean, least, most;
};
struct NumberHistory {
  std::string name;
  std::vector<Sample> samples;  // in the order of the labels
};
struct CaseHistory {
  std::string name;
  std::map<std::size_t, std::pair<std::string, std::string>> outcomes;  // by label: outcome, message
  std::vector<NumberHistory> numbers;
};
// If a label was checked several times, the last result of each case counts; the label's position is that of its first
// check.
struct Contents {
  std::vector<std::string> labels;
  std::vector<CaseHistory> cases;
};

class Database {
 public:
  enum class Access { read, add };
  // `add` creates the folder and the file if needed. ConfigError: the file cannot be opened, is damaged, is no history
  // or of another version; the file is not changed then.
  Database(const std::filesystem::path& folder, Access access);
  ~Database();
  Database(Database&&) noexcept;
  Database& operator=(Database&&) = delete;

  // Adds all results or none. ConfigError: the file cannot be written, or stays locked for several seconds.
  void add(const std::string& label, const std::vector<CaseResult>& results);
  Contents contents();

 private:
  std::unique_ptr<Connection> connection_;
};

}  // namespace rnicsim::sim::history
