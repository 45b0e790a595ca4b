// Results of checks, label by label: an SQLite database in a folder. docs/check.md is its manual.
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

// One case of one check.
struct CaseResult {
  std::string name;
  std::string outcome;                                                           // "passed", "failed" or "broken"
  std::string message;                                                           // empty if the case passed
  std::vector<std::pair<std::uint64_t, std::map<std::string, double>>> numbers;  // by seed
};

// A number of a case at one label, over its seeds.
struct Sample {
  std::size_t label;  // in Contents::labels
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
// If a label was checked several times, the last result of each case counts; its place is that of the first check.
struct Contents {
  std::vector<std::string> labels;
  std::vector<CaseHistory> cases;
};

class Database {
 public:
  enum class Access { read, add };
  // `add` makes folder and file where there are none. ConfigError: the file cannot be opened, is damaged, no history or
  // another version's. The file is left as it was.
  Database(const std::filesystem::path& folder, Access access);
  ~Database();
  Database(Database&&) noexcept;
  Database& operator=(Database&&) = delete;

  // All of it or nothing. ConfigError: it cannot be written, or is locked by others for longer than some seconds.
  void add(const std::string& label, const std::vector<CaseResult>& results);
  Contents contents();

 private:
  std::unique_ptr<Connection> connection_;
};

}  // namespace rnicsim::sim::history
