// SPDX-License-Identifier: Apache-2.0
#include "sim/config/param_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "model/base/parse_number.h"
#include "sim/config/config_error.h"

namespace rnicsim::sim {
namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

// The resolved configuration is TOML, whose integers end below 2^63.
constexpr double kMostWritable = 0x1p63 - 1024;

bool within(double value, Range range) {
  if (!range.choices.empty() && std::ranges::find(range.choices, value) == range.choices.end()) return false;
  return value >= range.least && value <= std::min(range.most, kMostWritable);
}

double base_units(Duration value) { return static_cast<double>(value.ps); }
double base_units(ByteCount value) { return static_cast<double>(value.bytes); }
double base_units(BitRate value) { return static_cast<double>(value.bits_per_second); }

constexpr double kUnlimited = 1e300;

template <class Quantity>
Quantity from_base_units(double value) {
  using Field = decltype([] {
    if constexpr (std::is_same_v<Quantity, Duration>)
      return std::int64_t{};
    else
      return std::uint64_t{};
  }());
  return Quantity{static_cast<Field>(std::min(value, 9e18))};
}

// Text of a range: "at least 1 ns, at most 1 s", or "one of 1 ns, 2 ns".
template <class ToText>
std::string range_text(Range range, ToText&& text) {
  if (!range.choices.empty()) {
    std::string all;
    for (const double choice : range.choices) all += (all.empty() ? "one of " : ", ") + text(choice);
    return all;
  }
  std::string least = range.least > -kUnlimited ? "at least " + text(range.least) : "";
  std::string most = range.most < kUnlimited ? "at most " + text(range.most) : "";
  return least + (least.empty() || most.empty() ? "" : ", ") + most;
}

template <class Quantity>
std::optional<std::string> assign_quantity(Quantity& value, std::optional<Quantity> parsed, std::string_view text,
                                           Range range, const char* what, const char* example) {
  if (!parsed) return fmt::format("'{}' is not {} with its unit, such as \"{}\"", text, what, example);
  if (!within(base_units(*parsed), range))
    return fmt::format("'{}' is out of range: {}", text,
                       range_text(range, [](double bound) { return to_string(from_base_units<Quantity>(bound)); }));
  value = *parsed;
  return std::nullopt;
}

template <class Number>
std::optional<std::string> assign_number(Number& value, std::string_view text, Range range) {
  auto parsed = parse_number<Number>(text);
  // Negative and too large whole numbers get the message of the range; 4.0 counts as 4.
  if (!parsed) {
    const auto number = parse_number<double>(text);
    if (!number) return fmt::format("'{}' is not a number", text);
    if (std::floor(*number) != *number) return fmt::format("'{}' is not a whole number", text);
    constexpr double kExact = 0x1p53;
    if (*number >= 0 && *number <= std::min(kExact, static_cast<double>(std::numeric_limits<Number>::max())))
      parsed = static_cast<Number>(*number);
  }
  if (!parsed || !within(static_cast<double>(*parsed), range))
    return fmt::format("'{}' is out of range: {}", text,
                       range_text(range, [](double bound) { return fmt::format("{}", bound); }));
  value = *parsed;
  return std::nullopt;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string ParamEntry::kind() const {
  return std::visit(Overloaded{[](Duration*) { return "time"; }, [](ByteCount*) { return "bytes"; },
                               [](BitRate*) { return "rate"; }, [](bool*) { return "true or false"; },
                               [](std::string*) { return "text"; }, [](auto*) { return "number"; }},
                    value);
}

bool ParamEntry::is_number() const {
  return std::holds_alternative<std::uint32_t*>(value) || std::holds_alternative<std::uint64_t*>(value) ||
         std::holds_alternative<double*>(value);
}

std::string ParamEntry::value_text() const {
  return std::visit(Overloaded{[](Duration* v) { return to_string(*v); }, [](ByteCount* v) { return to_string(*v); },
                               [](BitRate* v) { return to_string(*v); }, [](std::string* v) { return *v; },
                               [](auto* v) { return fmt::format("{}", *v); }},
                    value);
}

std::optional<std::string> ParamEntry::assign(std::string_view text) const {
  return std::visit(
      Overloaded{
          [&](Duration* v) { return assign_quantity(*v, parse_duration(text), text, range, "a time", "400 ns"); },
          [&](ByteCount* v) { return assign_quantity(*v, parse_byte_count(text), text, range, "a size", "4 KiB"); },
          [&](BitRate* v) { return assign_quantity(*v, parse_bit_rate(text), text, range, "a rate", "100 Gb/s"); },
          [&](bool* v) -> std::optional<std::string> {
            if (text != "true" && text != "false") return fmt::format("'{}' is neither true nor false", text);
            *v = text == "true";
            return std::nullopt;
          },
          [&](std::string* v) -> std::optional<std::string> {
            if (!words.empty() && std::ranges::find(words, text) == words.end())
              return fmt::format("'{}' is none of {}", text, fmt::join(words, ", "));
            *v = text;
            return std::nullopt;
          },
          [&](auto* v) { return assign_number(*v, text, range); }},
      value);
}

const ParamEntry* ParamList::find(std::string_view path) const {
  const auto found = std::ranges::find(entries_, path, &ParamEntry::path);
  return found == entries_.end() ? nullptr : &*found;
}

bool ParamList::is_group(std::string_view path) const {
  const auto prefix = std::string(path) + '.';
  return std::ranges::any_of(entries_, [&](const auto& entry) { return entry.path.starts_with(prefix); });
}

std::optional<std::string> ParamList::nearest(std::string_view path) const {
  std::vector<std::string> candidates;
  for (const auto& entry : entries_) {
    candidates.push_back(entry.path);
    for (auto dot = entry.path.find('.'); dot != std::string::npos; dot = entry.path.find('.', dot + 1))
      candidates.push_back(entry.path.substr(0, dot));
  }
  return nearest_name(path, candidates);
}

std::optional<std::string> ParamList::contradiction() const {
  if (!contradiction_) return std::nullopt;
  const auto& [path, is, other] = *contradiction_;
  if (other.empty()) return fmt::format("{}: '{}' {}", path, find(path)->value_text(), is);
  return fmt::format("{}: {} {} {}, {}", path, find(path)->value_text(), is, other, find(other)->value_text());
}

void ParamList::param(const char* name, Duration& value, const char* meaning, Range range) {
  add(name, &value, meaning, range);
}
void ParamList::param(const char* name, ByteCount& value, const char* meaning, Range range) {
  add(name, &value, meaning, range);
}
void ParamList::param(const char* name, BitRate& value, const char* meaning, Range range) {
  add(name, &value, meaning, range);
}
void ParamList::param(const char* name, std::uint32_t& value, const char* meaning, Range range) {
  add(name, &value, meaning, range);
}
void ParamList::param(const char* name, std::uint64_t& value, const char* meaning, Range range) {
  add(name, &value, meaning, range);
}
void ParamList::param(const char* name, double& value, const char* meaning, Range range) {
  add(name, &value, meaning, range);
}
void ParamList::param(const char* name, bool& value, const char* meaning) { add(name, &value, meaning, {}); }
void ParamList::param(const char* name, std::string& value, const char* meaning, std::span<const char* const> words) {
  add(name, &value, meaning, {});
  entries_.back().words = words;
}

void ParamList::refuse(bool contradiction, const char* name, const char* is, const char* other) {
  if (contradiction && !contradiction_) contradiction_ = {prefix_ + name, is, other != nullptr ? prefix_ + other : ""};
}

void ParamList::idle(bool idle, std::initializer_list<const char*> names, const char* why) {
  if (!idle) return;
  for (const auto* name : names) idle_.push_back({prefix_ + name, prefix_ + why, why});
}

std::optional<std::string> ParamList::idle_reason(std::string_view path) const {
  const auto covers = [&](const Idle& idle) {
    return path.starts_with(idle.path) && (path.size() == idle.path.size() || path[idle.path.size()] == '.');
  };
  const auto found = std::ranges::find_if(idle_, covers);
  if (found == idle_.end()) return std::nullopt;
  const auto* entry = find(found->why);
  return entry != nullptr ? fmt::format("{} is {}", entry->path, shown(entry->value_text())) : found->text;
}

void ParamList::enter(const char* name) { prefix_ += std::string(name) + '.'; }
void ParamList::leave() {
  prefix_.pop_back();
  prefix_.erase(prefix_.rfind('.') + 1);
}

void ParamList::add(const char* name, ParamEntry::Value value, const char* meaning, Range range) {
  entries_.push_back({prefix_ + name, meaning, value, range});
}

std::optional<std::string> nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  // A very long text is no misspelling, and its edit distance would take long.
  constexpr std::size_t kLongest = 200;
  if (name.size() > kLongest) return std::nullopt;
  const std::string* best = nullptr;
  std::size_t least = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const auto& candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < least) {
      least = distance;
      best = &candidate;
    }
  }
  return best ? std::optional(*best) : std::nullopt;
}

}  // namespace rnicsim::sim
