#include "sim/bench/table_reader.h"

#include <algorithm>

#include "sim/config/config_error.h"
#include "sim/config/param_list.h"

namespace rnicsim::sim::bench {
namespace {

std::optional<std::string> text_of(const toml::node& node) {
  return node.is_string() ? std::optional(node.as_string()->get()) : std::nullopt;
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
    complain(shown(name),
             fmt::format("there is no such key{}", meant ? fmt::format("; did you mean {}?", *meant) : ""));
  }
}

void TableReader::complain(std::string_view key, std::string_view what) const {
  throw ConfigError(fmt::format("{}: {}: {}", file_, path_of(key), what));
}

void TableReader::refuse(std::string_view key, std::string_view needed) const {
  complain(key, fmt::format("{} is needed", needed));
}

std::uint64_t TableReader::checked_number(const toml::node& node, std::string_view key, std::uint64_t least,
                                          std::uint64_t most) const {
  const auto* number = node.as_integer();
  if (!number || number->get() < 0 || static_cast<std::uint64_t>(number->get()) < least ||
      static_cast<std::uint64_t>(number->get()) > most)
    refuse(key, fmt::format("{}..{}", least, most));
  return static_cast<std::uint64_t>(number->get());
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
