// SPDX-License-Identifier: Apache-2.0
// Reads a table of a workload file key by key: types, units, ranges. A key that was not read is an unknown key.
#pragma once

#include <fmt/format.h>
#include <toml++/toml.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/base/units.h"

namespace rnicsim::sim::bench {

class TableReader {
 public:
  // `path` of the table within the file: "flow[1]", or "" for the file itself.
  TableReader(const toml::table& table, std::string file, std::string path)
      : table_(table), file_(std::move(file)), path_(std::move(path)) {}

  // Each leaves `value` unchanged if the key is absent. ConfigError: wrong type, or out of range.
  template <class Number>
  void number(std::string_view key, Number& value, std::uint64_t least, std::uint64_t most) {
    if (const auto* node = find(key)) value = static_cast<Number>(checked_number(*node, key, least, most));
  }
  template <class Number>
  void number(std::string_view key, std::optional<Number>& value, std::uint64_t least, std::uint64_t most) {
    if (const auto* node = find(key)) value = static_cast<Number>(checked_number(*node, key, least, most));
  }
  void size(std::string_view key, ByteCount& value, ByteCount least, ByteCount most) {
    if (const auto* node = find(key)) value = checked_size(*node, key, least, most);
  }
  void size(std::string_view key, std::optional<ByteCount>& value, ByteCount least, ByteCount most) {
    if (const auto* node = find(key)) value = checked_size(*node, key, least, most);
  }
  void time(std::string_view key, Duration& value, Duration least, Duration most) {
    if (const auto* node = find(key)) value = checked_time(*node, key, least, most);
  }
  void time(std::string_view key, std::optional<Duration>& value, Duration least, Duration most) {
    if (const auto* node = find(key)) value = checked_time(*node, key, least, most);
  }
  void text(std::string_view key, std::string& value);
  void flag(std::string_view key, bool& value);
  // Accepts the names that to_string() gives to the first `count` values of the enumeration.
  template <class Choice>
  void choice(std::string_view key, Choice& value, std::size_t count);

  bool has(std::string_view key) const { return table_.contains(key); }
  // nullptr: the key is absent. The key is known from now on.
  const toml::node* find(std::string_view key);
  const toml::node& need(std::string_view key);
  // ConfigError: the table has a key that was not read.
  void finish() const;

  std::string path_of(std::string_view key) const {
    return path_.empty() ? std::string(key) : path_ + '.' + std::string(key);
  }
  const std::string& file() const { return file_; }
  // Message: "FILE: flow[1].window: NEEDED is needed, not 0: BECAUSE".
  [[noreturn]] void refuse(std::string_view key, std::string_view needed, std::string_view because = {}) const;
  [[noreturn]] void complain(std::string_view key, std::string_view what) const;

  std::uint64_t checked_number(const toml::node& node, std::string_view key, std::uint64_t least,
                               std::uint64_t most) const;
  ByteCount checked_size(const toml::node& node, std::string_view key, ByteCount least, ByteCount most) const;
  Duration checked_time(const toml::node& node, std::string_view key, Duration least, Duration most) const;

 private:
  const toml::table& table_;
  std::string file_;
  std::string path_;
  std::vector<std::string> known_;
};

template <class Choice>
void TableReader::choice(std::string_view key, Choice& value, std::size_t count) {
  const auto* node = find(key);
  if (!node) return;
  std::string names;
  for (std::size_t i = 0; i < count; ++i) {
    const auto name = to_string(static_cast<Choice>(i));
    if (node->is_string() && node->as_string()->get() == name) {
      value = static_cast<Choice>(i);
      return;
    }
    names += fmt::format("{}\"{}\"", i == 0 ? "" : i + 1 == count ? " or " : ", ", name);
  }
  refuse(key, names);
}

}  // namespace rnicsim::sim::bench
