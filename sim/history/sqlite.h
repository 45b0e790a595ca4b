// SQLite's connection, statements and transactions as values; every error is a ConfigError with the file's name.
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
  enum class Mode { read, write };  // `write` makes a file that is not there
  // ConfigError: the file cannot be opened. Who has locked it is waited for, some seconds at each step.
  Connection(const std::filesystem::path& file, Mode mode);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  sqlite3* get() const { return database_; }
  void execute(const std::string& statements) const;
  // The first column of the answer's first row; 0: there is none.
  std::int64_t number_of(const std::string& question) const;
  // The error of the last call.
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

  // True: there is a row, whose columns are these.
  bool step();
  std::string text(int column) const;
  std::int64_t integer(int column) const;
  double real(int column) const;

  // To its end, with these values for its question marks.
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

// Undone unless it is committed.
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
