// SPDX-License-Identifier: Apache-2.0
#include "sim/bench/table_reader.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "sim/config/config_error.h"
#include "sim/config/param_list.h"

namespace rnicsim::sim::bench {
namespace {

std::optional<std::string> text_of(const toml::node& node) {
  return node.is_string() ? std::optional(node.as_string()->get()) : std::nullopt;
}

// A floating-point number without fraction, such as 4.0, is a whole number.
std::optional<std::uint64_t> whole_number(const toml::node& node) {
  constexpr double kExact = 0x1p53;
  const auto* whole = node.as_integer();
  const auto* real = node.as_floating_point();
  if (whole && whole->get() >= 0) return static_cast<std::uint64_t>(whole->get());
  if (real && real->get() >= 0 && real->get() <= kExact && std::floor(real->get()) == real->get())
    return static_cast<std::uint64_t>(real->get());
  return std::nullopt;
}

// Text of the value as in the file, on one line.
std::string given_text(const toml::node& node) {
  if (const auto text = text_of(node)) return fmt::format("\"{}\"", shown(*text));
  std::ostringstream out;
  node.visit([&](const auto& value) { out << value; });
  std::string text = out.str();
  std::ranges::replace(text, '\n', ' ');
  return shown(text);
}

}  // namespace

const toml::node* TableReader::find(std::string_view key) {
  known_.emplace_back(key);
  return table_.get(key);
}

const toml::node& TableReader::need(std::string_view key) {
  const auto* node = find(key);
  if (!node) complain(key, "is missing");
  return *node;
}

void TableReader::text(std::string_view key, std::string& value) {
  const auto* node = find(key);
  if (!node) return;
  const auto text = text_of(*node);
  if (!text || text->empty()) refuse(key, "a text");
  value = *text;
}

void TableReader::flag(std::string_view key, bool& value) {
  const auto* node = find(key);
  if (!node) return;
  if (!node->is_boolean()) refuse(key, "true or false");
  value = node->as_boolean()->get();
}

void TableReader::finish() const {
  for (const auto& [key, node] : table_) {
    const std::string name(key.str());
    if (std::ranges::find(known_, name) != known_.end()) continue;
    const auto meant = nearest_name(name, known_);
    complain(shown(name), fmt::format("unknown key{}", meant ? fmt::format("; did you mean {}?", *meant) : ""));
  }
}

void TableReader::complain(std::string_view key, std::string_view what) const {
  throw ConfigError(fmt::format("{}: {}: {}", file_, path_of(key), what));
}

void TableReader::refuse(std::string_view key, std::string_view needed, std::string_view because) const {
  const auto* given = table_.get(key);
  complain(key, fmt::format("{} is needed{}{}", needed, given ? ", not " + given_text(*given) : "",
                            because.empty() ? "" : fmt::format(": {}", because)));
}

std::uint64_t TableReader::checked_number(const toml::node& node, std::string_view key, std::uint64_t least,
                                          std::uint64_t most) const {
  const auto number = whole_number(node);
  if (!number || *number < least || *number > most) refuse(key, fmt::format("{}..{}", least, most));
  return *number;
}

ByteCount TableReader::checked_size(const toml::node& node, std::string_view key, ByteCount least,
                                    ByteCount most) const {
  const auto text = text_of(node);
  const auto value = text ? parse_byte_count(*text) : std::nullopt;
  if (!value || *value < least || *value > most)
    refuse(key, fmt::format("\"{}\"..\"{}\"", to_string(least), to_string(most)));
  return *value;
}

Duration TableReader::checked_time(const toml::node& node, std::string_view key, Duration least, Duration most) const {
  const auto text = text_of(node);
  const auto value = text ? parse_duration(*text) : std::nullopt;
  if (!value || *value < least || *value > most)
    refuse(key, fmt::format("\"{}\"..\"{}\"", to_string(least), to_string(most)));
  return *value;
}

}  // namespace rnicsim::sim::bench
