// SPDX-License-Identifier: Apache-2.0
#include "sim/history/database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <fstream>
#include <string_view>

#include "sim/config/config_error.h"
#include "sim/history/sqlite.h"

namespace rnicsim::sim::history {
namespace {

namespace fs = std::filesystem;

constexpr int kApplication = 0x726e6963, kVersion = 1;  // "rnic"

constexpr auto kTables = R"(
CREATE TABLE run(id INTEGER PRIMARY KEY, label TEXT NOT NULL);
CREATE TABLE outcome(run INTEGER NOT NULL REFERENCES run(id), name TEXT NOT NULL, outcome TEXT NOT NULL,
  message TEXT NOT NULL, PRIMARY KEY(run, name)) WITHOUT ROWID;
CREATE TABLE number(run INTEGER NOT NULL REFERENCES run(id), name TEXT NOT NULL, number TEXT NOT NULL,
  seed INTEGER NOT NULL, value REAL NOT NULL, PRIMARY KEY(run, name, number, seed)) WITHOUT ROWID;
)";

// The last run of each label and case.
constexpr auto kLatest = R"(
WITH latest AS (SELECT MAX(run.id) AS id, run.label AS label, outcome.name AS name
                FROM outcome JOIN run ON run.id = outcome.run GROUP BY run.label, outcome.name)
)";

// SQLite takes a file shorter than its header for an empty database, and would overwrite it.
void check_beginning(const fs::path& file) {
  constexpr std::string_view kBeginning("SQLite format 3\0", 16);
  constexpr std::uintmax_t kHeaderBytes = 100;
  std::error_code error;
  const auto size = fs::file_size(file, error);
  if (error || size == 0) return;
  std::string beginning(kBeginning.size(), ' ');
  std::ifstream(file, std::ios::binary).read(beginning.data(), std::streamsize(beginning.size()));
  if (size < kHeaderBytes || beginning != kBeginning)
    throw ConfigError(fmt::format("{}: file is not a database; the file is not changed", file.string()));
}

// Checks that the file is an undamaged history of this version.
void check_history(const Connection& connection) {
  const auto application = connection.number_of("PRAGMA application_id");
  if (application != kApplication) connection.refuse("not a history of rnicsim");
  const auto version = connection.number_of("PRAGMA user_version");
  if (version != kVersion)
    connection.refuse(fmt::format("the history has version {}; this rnicsim reads version {}", version, kVersion));
  Statement check(connection, "PRAGMA quick_check(1)");
  if (!check.step()) connection.refuse("damaged");
  const auto said = check.text(0);
  if (said != "ok") connection.refuse("damaged: " + shown(said));
}

bool is_empty(const Connection& connection) {
  return connection.number_of("SELECT COUNT(*) FROM sqlite_master") == 0 &&
         connection.number_of("PRAGMA application_id") == 0;
}

void make_tables(const Connection& connection) {
  Transaction transaction(connection, Transaction::Kind::write);
  // Another process may have created the tables meanwhile.
  if (is_empty(connection)) {
    connection.execute(kTables);
    connection.execute(fmt::format("PRAGMA application_id = {}", kApplication));
    connection.execute(fmt::format("PRAGMA user_version = {}", kVersion));
  }
  transaction.commit();
}

CaseHistory& case_called(Contents& contents, const std::string& name) {
  auto found = std::ranges::find(contents.cases, name, &CaseHistory::name);
  if (found != contents.cases.end()) return *found;
  contents.cases.push_back({name, {}, {}});
  return contents.cases.back();
}

void read_outcomes(const Connection& connection, const std::map<std::string, std::size_t>& labels, Contents& contents) {
  Statement rows(connection, std::string(kLatest) +
                                 "SELECT latest.name, latest.label, outcome.outcome, outcome.message FROM latest "
                                 "JOIN outcome ON outcome.run = latest.id AND outcome.name = latest.name "
                                 "ORDER BY latest.name");
  while (rows.step())
    case_called(contents, rows.text(0)).outcomes[labels.at(rows.text(1))] = {rows.text(2), rows.text(3)};
}

void read_numbers(const Connection& connection, const std::map<std::string, std::size_t>& labels, Contents& contents) {
  Statement rows(connection,
                 std::string(kLatest) +
                     "SELECT latest.name, number.number, latest.label, AVG(value), MIN(value), MAX(value) FROM latest "
                     "JOIN number ON number.run = latest.id AND number.name = latest.name "
                     "GROUP BY latest.name, number.number, latest.label ORDER BY latest.name, number.number");
  while (rows.step()) {
    auto& numbers = case_called(contents, rows.text(0)).numbers;
    if (const auto name = rows.text(1); numbers.empty() || numbers.back().name != name) numbers.push_back({name, {}});
    numbers.back().samples.push_back({labels.at(rows.text(2)), rows.real(3), rows.real(4), rows.real(5)});
  }
  for (auto& of : contents.cases)
    for (auto& number : of.numbers) std::ranges::sort(number.samples, {}, &Sample::label);
}

}  // namespace

Database::Database(const fs::path& folder, Access access) {
  const auto file = folder / "history.sqlite";
  check_beginning(file);
  if (access == Access::read) {
    connection_ = std::make_unique<Connection>(file, Connection::Mode::read);
    check_history(*connection_);
    return;
  }
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw ConfigError(fmt::format("{}: {}", folder.string(), error.message()));
  connection_ = std::make_unique<Connection>(file, Connection::Mode::write);
  if (is_empty(*connection_)) make_tables(*connection_);
  check_history(*connection_);
}

Database::~Database() = default;
Database::Database(Database&&) noexcept = default;

void Database::add(const std::string& label, const std::vector<CaseResult>& results) {
  const auto& connection = *connection_;
  Transaction transaction(connection, Transaction::Kind::write);
  Statement(connection, "INSERT INTO run(label) VALUES(?)").run(label);
  const std::int64_t run = sqlite3_last_insert_rowid(connection.get());
  Statement outcome(connection, "INSERT INTO outcome VALUES(?, ?, ?, ?)");
  Statement number(connection, "INSERT INTO number VALUES(?, ?, ?, ?, ?)");
  for (const auto& result : results) {
    outcome.run(run, result.name, result.outcome, result.message);
    for (const auto& [seed, numbers] : result.numbers)
      for (const auto& [name, value] : numbers) number.run(run, result.name, name, std::int64_t(seed), value);
  }
  transaction.commit();
}

Contents Database::contents() {
  const auto& connection = *connection_;
  // Both queries must see the same state.
  Transaction transaction(connection, Transaction::Kind::read);
  Contents contents;
  std::map<std::string, std::size_t> labels;
  Statement rows(connection, "SELECT label FROM run GROUP BY label ORDER BY MIN(id)");
  while (rows.step()) {
    labels.emplace(rows.text(0), contents.labels.size());
    contents.labels.push_back(rows.text(0));
  }
  read_outcomes(connection, labels, contents);
  read_numbers(connection, labels, contents);
  return contents;
}

}  // namespace rnicsim::sim::history
