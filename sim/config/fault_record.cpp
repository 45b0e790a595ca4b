// SPDX-License-Identifier: Apache-2.0
#include "sim/config/fault_record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "model/cm/messages.h"
#include "model/roce/opcode.h"
#include "sim/config/config_error.h"
#include "sim/config/param_list.h"

namespace rnicsim::sim {
namespace {

using fabric::FaultAction;
using fabric::NumberRange;

struct ActionName {
  FaultAction action;
  const char* name;
  const char* past;
};
constexpr ActionName kActions[] = {{FaultAction::drop, "drop", "dropped"},
                                   {FaultAction::corrupt, "corrupt", "corrupted"},
                                   {FaultAction::duplicate, "duplicate", "duplicated"},
                                   {FaultAction::delay, "delay", "delayed"},
                                   {FaultAction::reorder, "reorder", "reordered"}};
// Keys in the order in which fault_text() writes them.
constexpr const char* kKeys[] = {"host", "opcode", "cm", "qp", "psn", "nth", "count", "by", "limit", "at", "for"};
constexpr std::pair<const char*, Outage::Kind> kOutages[] = {{"link_down", Outage::Kind::link_down},
                                                             {"fatal", Outage::Kind::fatal}};
constexpr std::uint32_t kNoHost = ~0u;

constexpr std::uint64_t kMost24Bits = 0xffffff;
constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (auto end = text.find(at); end != text.npos; end = text.find(at)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates) {
  const auto meant = nearest_name(name, candidates);
  return meant ? fmt::format("; did you mean {}?", *meant) : "";
}

std::optional<std::uint64_t> decimal_or_hexadecimal(std::string_view text) {
  const int base = text.starts_with("0x") ? 16 : 10;
  if (base == 16) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// A rule may name an opcode by its own name, or all opcodes of an operation by this name.
std::string family_of(const roce::OpcodeInfo& info) {
  static constexpr const char* kOperations[] = {
      "SEND", "WRITE", "READ_REQUEST", "READ_RESPONSE", "ACKNOWLEDGE", "ATOMIC_ACKNOWLEDGE", "ATOMIC", "ATOMIC_WRITE"};
  if (info.operation == roce::Operation::notify) return info.name;
  const bool xrc = info.transport == roce::Transport::xrc_send || info.transport == roce::Transport::xrc_recv;
  const char* transport = info.transport == roce::Transport::uc   ? "UC_"
                          : info.transport == roce::Transport::ud ? "UD_"
                          : xrc                                   ? "XRC_"
                                                                  : "";
  return std::string(transport) + kOperations[static_cast<std::size_t>(info.operation)];
}

// Reads the fields of one record.
class Reader {
 public:
  Reader(const Record& record, std::size_t number) : record_(record), number_(number) {}

  const Setting* find(const char* key) const {
    const auto found = record_.fields.find(key);
    return found == record_.fields.end() ? nullptr : &found->second;
  }

  [[noreturn]] void refuse(const std::string& where, const std::string& why) const {
    throw ConfigError(fmt::format("{}: fault rule {}: {}", where, number_, why));
  }
  [[noreturn]] void refuse(const Setting& setting, const std::string& why) const {
    refuse(setting.where, setting.path + ": " + why);
  }

  // Reads a value by the rules of parameters. False: no such key.
  template <class Value>
  bool read(const char* key, Value& value, Range range) const {
    const Setting* setting = find(key);
    if (!setting) return false;
    if (const auto wrong = ParamEntry{key, "", &value, range}.assign(setting->text)) refuse(*setting, shown(*wrong));
    return true;
  }

  // Parses "3", "3-5", or several of these separated by '+'. `open` replaces a missing end; nullopt: an end is
  // required.
  std::vector<NumberRange> ranges(const char* key, NumberRange within, std::optional<std::uint64_t> open) const {
    const Setting* setting = find(key);
    if (!setting) return {};
    std::vector<NumberRange> result;
    for (const auto part : split(setting->text, '+')) {
      const auto dash = part.find('-');
      const auto first = decimal_or_hexadecimal(trimmed(part.substr(0, dash)));
      auto last = first;
      if (dash != part.npos) {
        const auto end = trimmed(part.substr(dash + 1));
        last = end.empty() ? open : decimal_or_hexadecimal(end);
      }
      if (!first || !last)
        refuse(*setting, fmt::format("'{}' is neither a whole number nor a range such as 3-5", shown(part)));
      for (const auto value : {*first, *last})
        if (value < within.first || value > within.last)
          refuse(*setting, fmt::format("'{}' is out of range: at least {}{}", shown(part), within.first,
                                       within.last == kUnlimited ? "" : fmt::format(", at most {}", within.last)));
      result.push_back({*first, *last});
    }
    return result;
  }

  void check_keys(FaultAction action) const {
    std::vector<std::string> known{"action", "probability"};
    known.insert(known.end(), std::begin(kKeys), std::end(kKeys));
    for (const auto& [key, setting] : record_.fields) {
      if (std::ranges::find(known, key) == known.end())
        refuse(setting.where, fmt::format("a fault rule has no key '{}'{}", shown(key), did_you_mean(key, known)));
      const bool other_action = (key == "by" && (action == FaultAction::drop || action == FaultAction::corrupt)) ||
                                (key == "limit" && action != FaultAction::reorder) || key == "at" || key == "for";
      if (other_action) refuse(setting, fmt::format("unknown key of {}", find("action")->text));
      if (setting.type == Setting::Type::other) refuse(setting, "not a value of a fault rule");
    }
  }

 private:
  const Record& record_;
  const std::size_t number_;
};

FaultAction read_action(const Reader& reader, const Record& record) {
  std::vector<std::string> names;
  for (const auto& action : kActions) names.emplace_back(action.name);
  for (const auto& [name, kind] : kOutages) names.emplace_back(name);
  const Setting* setting = reader.find("action");
  if (!setting) reader.refuse(record.where, fmt::format("a fault rule needs an action: {}", fmt::join(names, ", ")));
  const auto found = std::ranges::find(kActions, setting->text, &ActionName::name);
  if (found == std::end(kActions))
    reader.refuse(*setting, fmt::format("'{}' is none of {}{}", shown(setting->text), fmt::join(names, ", "),
                                        did_you_mean(setting->text, names)));
  return found->action;
}

std::uint32_t read_host(const Reader& reader, const Setting& setting, const Topology& topology) {
  if (const auto host = topology.find(setting.text)) return *host;
  std::vector<std::string> names;
  for (const auto& interface : topology.interfaces) names.push_back(label_of(interface));
  reader.refuse(setting,
                fmt::format("no host is called '{}'{}", shown(setting.text), did_you_mean(setting.text, names)));
}

std::string upper(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return std::toupper(c); });
  return result;
}

std::bitset<256> read_opcodes(const Reader& reader, const Setting& setting) {
  std::bitset<256> opcodes;
  for (const auto part : split(setting.text, '+')) {
    const std::string wanted = upper(trimmed(part));
    std::vector<std::string> names, families;
    bool found = false;
    for (unsigned code = 0; code < opcodes.size(); ++code) {
      const auto* info = roce::find_opcode(static_cast<std::uint8_t>(code));
      if (!info) continue;
      names.emplace_back(info->name);
      if (std::ranges::find(families, family_of(*info)) == families.end()) families.push_back(family_of(*info));
      if (wanted != info->name && wanted != family_of(*info)) continue;
      opcodes.set(code);
      found = true;
    }
    if (found) continue;
    names.insert(names.begin(), families.begin(), families.end());
    reader.refuse(setting, fmt::format("no opcode is called '{}'{}", shown(part), did_you_mean(wanted, names)));
  }
  return opcodes;
}

std::bitset<16> read_management(const Reader& reader, const Setting& setting) {
  std::bitset<16> messages;
  static_assert(cm::kMessageNames.size() <= messages.size());
  for (const auto part : split(setting.text, '+')) {
    const std::string wanted = upper(trimmed(part));
    const auto found = std::ranges::find(cm::kMessageNames, wanted);
    if (found == cm::kMessageNames.end()) {
      const std::vector<std::string> names(cm::kMessageNames.begin(), cm::kMessageNames.end());
      reader.refuse(setting, fmt::format("no message of connection management is called '{}'{}", shown(part),
                                         did_you_mean(wanted, names)));
    }
    messages.set(std::size_t(found - cm::kMessageNames.begin()));
  }
  return messages;
}

std::optional<Outage::Kind> outage_kind(const Reader& reader) {
  const Setting* action = reader.find("action");
  for (const auto& [name, kind] : kOutages)
    if (action && action->text == name) return kind;
  return std::nullopt;
}

Outage read_outage(const Reader& reader, const Record& record, const Topology& topology, Outage::Kind kind) {
  constexpr Range kTimes{0, 3600e12};
  for (const auto& [key, setting] : record.fields)
    if (key != "action" && key != "host" && key != "at" && (key != "for" || kind != Outage::Kind::link_down))
      reader.refuse(setting, fmt::format("unknown key of {}", reader.find("action")->text));
  Outage outage{.kind = kind, .interface = 0, .at = {}, .lasts = {}};
  const Setting* host = reader.find("host");
  if (!host || !reader.read("at", outage.at, kTimes))
    reader.refuse(record.where,
                  fmt::format("{} needs 'host' and 'at', such as host=h0,at=10ms", reader.find("action")->text));
  outage.interface = read_host(reader, *host, topology);
  Duration lasts;
  if (reader.read("for", lasts, {1, kTimes.most})) outage.lasts = lasts;
  return outage;
}

// The meaning of `by` and `limit` depends on the action.
void read_extent(const Reader& reader, const Record& record, fabric::FaultRule& rule) {
  constexpr double kMostDelay = 3600e12, kMostBehind = 1'000'000;
  if (rule.action == FaultAction::reorder) {
    reader.read("by", rule.behind, {1, kMostBehind});
    reader.read("limit", rule.limit, {1, kMostDelay});
  } else {
    const bool given = reader.read("by", rule.delay, {rule.action == FaultAction::delay ? 1.0 : 0.0, kMostDelay});
    if (!given && rule.action == FaultAction::delay)
      reader.refuse(record.where, "delay needs 'by', such as by = \"2 us\"");
  }
}

}  // namespace

Record fault_option(std::string_view text) {
  const std::string where = fmt::format("--fault {}", shown(text));
  Record record{{}, where};
  const auto add = [&](std::string_view key, std::string_view value) {
    const std::string name(trimmed(key));
    const Setting setting{name, Setting::Type::text, std::string(trimmed(value)), where};
    if (name.empty() || setting.text.empty() || !record.fields.emplace(name, setting).second)
      throw ConfigError(
          fmt::format("{}: '{}={}': {}", where, shown(key), shown(value),
                      name.empty() || setting.text.empty() ? "KEY=VALUE is needed" : "the key is given twice"));
  };
  const auto parts = split(text, ',');
  for (const auto part : parts) {
    const auto equals = part.find('=');
    const bool first = part.data() == parts.front().data();
    if (first) add("action", part.substr(0, equals));
    if (equals != part.npos)
      add(first ? "probability" : part.substr(0, equals), part.substr(equals + 1));
    else if (!first)
      throw ConfigError(fmt::format("{}: '{}': KEY=VALUE is needed", where, shown(part)));
  }
  return record;
}

FaultSetting to_fault(const Record& record, const Topology& topology, std::size_t number) {
  FaultSetting result{{}, record};
  const Reader reader(result.record, number);
  auto& rule = result.rule;
  if (const auto kind = outage_kind(reader)) {
    result.outage = read_outage(reader, record, topology, *kind);
    rule.host = kNoHost;
    return result;
  }
  rule.action = read_action(reader, record);
  reader.check_keys(rule.action);
  if (const Setting* setting = reader.find("probability"); setting && parse_duration(setting->text))
    reader.refuse(*setting,
                  fmt::format("'{0}' is a time: the key 'by' gives the delay, such as by={0}", setting->text));
  reader.read("probability", rule.probability, {0, 1});
  if (const Setting* host = reader.find("host")) rule.host = read_host(reader, *host, topology);
  if (const Setting* opcode = reader.find("opcode")) rule.opcodes = read_opcodes(reader, *opcode);
  if (const Setting* messages = reader.find("cm")) rule.management = read_management(reader, *messages);
  const auto qp = reader.ranges("qp", {0, kMost24Bits}, std::nullopt);
  if (qp.size() > 1 || (!qp.empty() && qp[0].first != qp[0].last))
    reader.refuse(*reader.find("qp"), fmt::format("one number is needed, not '{}'", shown(reader.find("qp")->text)));
  if (!qp.empty()) rule.qp = static_cast<std::uint32_t>(qp[0].first);
  rule.psn = reader.ranges("psn", {0, kMost24Bits}, std::nullopt);
  rule.nth = reader.ranges("nth", {1, kUnlimited}, kUnlimited);
  for (const auto& range : rule.nth)
    if (range.last < range.first) reader.refuse(*reader.find("nth"), "the end of the range is before its begin");
  std::uint64_t count = 0;
  if (reader.read("count", count, {1})) rule.count = count;
  read_extent(reader, record, rule);
  return result;
}

std::string fault_text(const FaultSetting& fault) {
  const auto& fields = fault.record.fields;
  std::string text = fields.at("action").text;
  const auto add = [&](const char* key, std::string_view prefix) {
    const auto found = fields.find(key);
    if (found == fields.end()) return;
    text += prefix;
    std::ranges::remove_copy(found->second.text, std::back_inserter(text), ' ');
  };
  add("probability", "=");
  for (const char* key : kKeys) add(key, fmt::format(",{}=", key));
  return text;
}

std::string fault_comment(const fabric::Fault& fault) {
  const auto action = std::ranges::find(kActions, fault.action, &ActionName::action);
  return fmt::format("{} by fault rule {}", action->past, fault.position + 1);
}

}  // namespace rnicsim::sim
