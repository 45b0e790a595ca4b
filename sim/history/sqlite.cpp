// SPDX-License-Identifier: Apache-2.0
#include "sim/history/sqlite.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include "sim/config/config_error.h"

namespace rnicsim::sim::history {
namespace {

constexpr int kPatienceMs = 5000;  // wait for another process's lock

}  // namespace

Connection::Connection(const std::filesystem::path& file, Mode mode) : file_(file) {
  const int flags = mode == Mode::read ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  if (sqlite3_open_v2(file.c_str(), &database_, flags, nullptr) != SQLITE_OK) {
    const std::string why = database_ ? sqlite3_errmsg(database_) : "no memory";
    sqlite3_close(database_);
    throw ConfigError(fmt::format("{}: {}", file.string(), why));
  }
  sqlite3_busy_timeout(database_, kPatienceMs);
}

Connection::~Connection() { sqlite3_close(database_); }

void Connection::complain() const {
  const int code = sqlite3_errcode(database_) & 0xff;
  const bool is_locked = code == SQLITE_BUSY || code == SQLITE_LOCKED;
  const bool is_damaged = code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
  throw ConfigError(fmt::format("{}: {}{}", file_.string(), sqlite3_errmsg(database_),
                                is_locked    ? "; no data was written"
                                : is_damaged ? "; the file is not changed"
                                             : ""));
}

void Connection::refuse(std::string_view why) const {
  throw ConfigError(fmt::format("{}: {}; the file is not changed", file_.string(), why));
}

void Connection::execute(const std::string& statements) const {
  if (sqlite3_exec(database_, statements.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) complain();
}

std::int64_t Connection::number_of(const std::string& question) const {
  Statement statement(*this, question);
  return statement.step() ? statement.integer(0) : 0;
}

Statement::Statement(const Connection& connection, const std::string& text) : connection_(connection) {
  check(sqlite3_prepare_v2(connection.get(), text.c_str(), -1, &statement_, nullptr));
}

Statement::~Statement() { sqlite3_finalize(statement_); }

bool Statement::step() {
  const int status = sqlite3_step(statement_);
  if (status != SQLITE_ROW && status != SQLITE_DONE) connection_.complain();
  return status == SQLITE_ROW;
}

std::string Statement::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return text ? std::string(text, std::size_t(sqlite3_column_bytes(statement_, column))) : std::string();
}

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_, column); }

double Statement::real(int column) const { return sqlite3_column_double(statement_, column); }

void Statement::bind(int column, const std::string& text) {
  check(sqlite3_bind_text(statement_, column, text.data(), int(text.size()), SQLITE_TRANSIENT));
}

void Statement::bind(int column, std::int64_t number) { check(sqlite3_bind_int64(statement_, column, number)); }

void Statement::bind(int column, double number) { check(sqlite3_bind_double(statement_, column, number)); }

void Statement::check(int status) const {
  if (status != SQLITE_OK) connection_.complain();
}

void Statement::reset() { sqlite3_reset(statement_); }

Transaction::Transaction(const Connection& connection, Kind kind) : connection_(connection) {
  connection.execute(kind == Kind::read ? "BEGIN" : "BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
  if (!is_committed_) sqlite3_exec(connection_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
  connection_.execute("COMMIT");
  is_committed_ = true;
}

}  // namespace rnicsim::sim::history
