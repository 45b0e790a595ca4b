// SPDX-License-Identifier: Apache-2.0
// RAII wrappers of SQLite's connection, statement and transaction. Every error is a ConfigError with the file's name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace rnicsim::sim::history {

class Connection {
 public:
  enum class Mode { read, write };  // `write` creates a missing file
  // ConfigError: the file cannot be opened. Each operation waits some seconds while another process locks the file.
  Connection(const std::filesystem::path& file, Mode mode);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  sqlite3* get() const { return database_; }
  void execute(const std::string& statements) const;
  // First column of the first row; 0: no row.
  std::int64_t number_of(const std::string& question) const;
  // Throws the error of the last call.
  [[noreturn]] void complain() const;
  [[noreturn]] void refuse(std::string_view why) const;

 private:
  const std::filesystem::path file_;
  sqlite3* database_ = nullptr;
};

class Statement {
 public:
  Statement(const Connection& connection, const std::string& text);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  // True: a row is available for the functions below.
  bool step();
  std::string text(int column) const;
  std::int64_t integer(int column) const;
  double real(int column) const;

  // Executes the statement to its end, with `values` for its parameters.
  template <class... Values>
  void run(const Values&... values) {
    int column = 0;
    (bind(++column, values), ...);
    step();
    reset();
  }

 private:
  void bind(int column, const std::string& text);
  void bind(int column, std::int64_t number);
  void bind(int column, double number);
  void check(int status) const;
  void reset();

  const Connection& connection_;
  sqlite3_stmt* statement_ = nullptr;
};

// Rolled back by the destructor unless committed.
class Transaction {
 public:
  enum class Kind { read, write };
  Transaction(const Connection& connection, Kind kind);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  void commit();

 private:
  const Connection& connection_;
  bool is_committed_ = false;
};

}  // namespace rnicsim::sim::history
