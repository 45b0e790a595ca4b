// SPDX-License-Identifier: Apache-2.0
#include "sim/config/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "sim/config/config_error.h"
#include "sim/config/fault_record.h"
#include "sim/config/host_names.h"
#include "sim/config/host_record.h"
#include "sim/config/settings.h"
#include "sim/config/sized_topology.h"

namespace rnicsim::sim {
namespace {

namespace fs = std::filesystem;

// Names of the switches. ConfigError: a switch has the name of a host.
std::vector<std::string> switch_names(const std::vector<Record>& records, const Topology& topology) {
  std::vector<std::string> names;
  for (const auto& record : records) {
    for (const auto& [key, field] : record.fields)
      if (key != "name" && !Choices::kind_of("switches", key))
        throw ConfigError(fmt::format("{}: a switch may have a name and a type, but no {}", field.where, shown(key)));
    const auto name = record.fields.find("name");
    if (name == record.fields.end()) throw ConfigError(fmt::format("{}: a switch needs a name", record.where));
    check_node_name(name->second, "switches");
    const auto& text = name->second.text;
    if (topology.find(text) || std::ranges::find(names, text) != names.end())
      throw ConfigError(fmt::format("{}: '{}' is already the name of another node", record.where, text));
    if (names.size() == kMaxSwitches)
      throw ConfigError(fmt::format("{}: more than {} switches", record.where, kMaxSwitches));
    names.push_back(text);
  }
  return names;
}

// The setting with `key` as its whole path.
Setting choice_of(const Setting& setting, std::string_view key) {
  if (setting.type != Setting::Type::text || setting.text.empty())
    throw ConfigError(fmt::format("{}: {}: the name of a profile is needed", setting.where, shown(setting.path)));
  auto choice = setting;
  choice.path = key;
  return choice;
}

fs::path file_of_host(const TomlFile& file) {
  if (const auto beside = host_beside(file)) return *beside;
  try {
    return find_data(DataKind::host, file.host->text);
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{}: host: {}", file.host->where, error.what()));
  }
}

void choose_of_record(const Record& record, const char* group, const std::string& node, Choices& choices) {
  for (const auto& [key, field] : record.fields)
    if (const auto kind = Choices::kind_of(group, key)) choices.choose(node, *kind, choice_of(field, key));
}

}  // namespace

void Loader::load(DataKind kind, const fs::path& path) {
  std::optional<Topology> sized;
  const auto find = [&](const std::string& base) -> std::optional<fs::path> {
    if (kind == DataKind::topology) sized = sized_topology(base);
    return sized ? std::nullopt : std::optional(find_data(kind, base));
  };
  const auto files = read_with_bases(path, find);
  if (sized) {
    topology_ = std::move(*sized);
    choices_ = {};
  }
  if (const auto* file = with_host(files); file != nullptr && !host_chosen_) {
    host_chosen_ = kind == DataKind::topology;
    take_host(file_of_host(*file), file->host->text);
  }
  for (const auto& file : files) {
    const auto is_taken = [&](const Setting& setting) {
      return !is_choice(setting.path) && !(kind == DataKind::nic && is_note(setting));
    };
    const bool own = !is_shipped_file(kind, file.path);
    for (const auto& setting : file.settings) {
      if (!is_taken(setting)) continue;
      take_setting(setting, file.path.parent_path());
      if (own) own_settings_.push_back(setting);
    }
    take_topology(file);
    for (const auto& setting : file.settings)
      if (is_choice(setting.path)) choose(setting);
    faults_.insert(faults_.end(), file.faults.begin(), file.faults.end());
  }
}

void Loader::choose_host(std::string_view name_or_path) {
  host_chosen_ = true;
  take_host(find_data(DataKind::host, name_or_path), std::string(name_or_path));
}

void Loader::take_host(const fs::path& path, const std::string& name) {
  for (const auto& setting : host_settings(path)) apply(params_, setting);
  if (host_chosen_) root_complex_ = load_host_profile(path).pcie;
  host_ = name;
}

void Loader::set(std::string_view text) {
  const auto setting = setting_option(text);
  if (is_choice(setting.path)) return choose(setting);
  take_setting(setting, {});
  own_settings_.push_back(setting);
}

void Loader::take_setting(const Setting& setting, const fs::path& folder) {
  if (ProfileBook::is_of_profile(setting.path)) return profiles_.take(setting, folder);
  apply(params_, setting);
}

bool Loader::is_choice(std::string_view path) {
  constexpr std::array<std::string_view, 4> kGroups = {"hosts", "devices", "switches", "cables"};
  const auto group = path.substr(0, path.find('.'));
  return group != path && std::ranges::find(kGroups, group) != kGroups.end();
}

void Loader::choose(const Setting& setting) {
  const std::string_view path = setting.path;
  const auto first = path.find('.'), last = path.rfind('.');
  const auto group = path.substr(0, first), key = path.substr(last + 1);
  const auto kind = Choices::kind_of(group, key);
  if (!kind || first == last)
    throw ConfigError(
        fmt::format("{}: there is no {}: use hosts.NAME.nic, .type or .engine, devices.NAME:N.nic or .engine, "
                    "switches.NAME.type, cables.FROM-TO.link or .port",
                    setting.where, shown(path)));
  const std::string name(path.substr(first + 1, last - first - 1));
  const auto own = choice_of(setting, key);
  if (group == "cables") return choose_cables(setting, name, *kind, own);
  if (topology_.interfaces.empty()) throw ConfigError(fmt::format("{}: there are no hosts yet", setting.where));
  if (group == "hosts") {
    try {
      for (const auto host : expand_hosts(name, topology_))
        choices_.choose(topology_.interfaces[host].name, *kind, own);
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("{}: {}", setting.where, error.what()));
    }
    return;
  }
  const auto node = topology_.find_node(name);
  if (!node || topology_.is_switch(*node) != (group == "switches"))
    throw ConfigError(
        fmt::format("{}: no {} is called '{}'", setting.where, group == "switches" ? "switch" : "device", shown(name)));
  choices_.choose(name, *kind, own);
}

// Sets each of several cables between the two nodes.
void Loader::choose_cables(const Setting& setting, std::string_view ends, std::string_view kind, const Setting& own) {
  bool found = false;
  for (std::size_t i = 0; i < topology_.cables.size(); ++i) {
    const auto from = topology_.node_name(topology_.cables[i].first);
    const auto to = topology_.node_name(topology_.cables[i].second);
    if (ends != fmt::format("{}-{}", from, to) && ends != fmt::format("{}-{}", to, from)) continue;
    choices_.choose(i, kind, own);
    found = true;
  }
  if (!found) throw ConfigError(fmt::format("{}: there is no cable {}", setting.where, shown(ends)));
}

void Loader::fault(std::string_view rule) { faults_.push_back(fault_option(rule)); }

// Adds hosts in the file's order, then devices in the file's order: their numbers follow from it.
void Loader::take_interfaces(const TomlFile& file) {
  if (file.hosts.empty() && file.devices.empty()) return;
  auto& interfaces = topology_.interfaces;
  if (!file.hosts.empty()) {
    topology_ = {};
    choices_ = {};
  }
  for (const auto& record : file.hosts) interfaces.push_back(to_host(record, interfaces.size()));
  for (const auto& record : file.devices) interfaces.push_back(to_device(record, topology_));
  // Switch numbers come after the interfaces, so they shift by the number of new devices.
  const std::size_t before = interfaces.size() - file.devices.size();
  for (auto& cable : topology_.cables)
    for (std::uint32_t* node : {&cable.first, &cable.second})
      if (*node >= before) *node += static_cast<std::uint32_t>(file.devices.size());
  std::vector<Record> records = file.hosts;
  records.insert(records.end(), file.devices.begin(), file.devices.end());
  check_distinct(interfaces, records);
  for (std::size_t i = 0; i < records.size(); ++i)
    choose_of_record(records[i], i < file.hosts.size() ? "hosts" : "devices",
                     label_of(interfaces[interfaces.size() - records.size() + i]), choices_);
}

void Loader::take_topology(const TomlFile& file) {
  take_interfaces(file);
  if (!file.switches.empty()) {
    topology_.cables.clear();
    choices_.forget_cables();
    for (const auto& name : topology_.switches) choices_.forget_node(name);
    topology_.switches = switch_names(file.switches, topology_);
    for (std::size_t i = 0; i < file.switches.size(); ++i)
      choose_of_record(file.switches[i], "switches", topology_.switches[i], choices_);
  }
  if (file.cables.empty()) return;
  topology_.cables.clear();
  choices_.forget_cables();
  std::set<std::uint32_t> connected;
  const auto taken = [&](std::uint32_t node) { return !topology_.is_switch(node) && !connected.insert(node).second; };
  for (const auto& record : file.cables) {
    for (const auto& [key, field] : record.fields) {
      if (key == "from" || key == "to") continue;
      const auto kind = Choices::kind_of("cables", key);
      if (!kind)
        throw ConfigError(
            fmt::format("{}: a cable may have from, to, link and port, but no {}", field.where, shown(key)));
      choices_.choose(topology_.cables.size(), *kind, choice_of(field, key));
    }
    const auto from = cable_end(record, "from");
    const auto to = cable_end(record, "to");
    if (from == to && topology_.is_switch(from))
      throw ConfigError(fmt::format("{}: a cable has two ends", record.where));
    if (taken(from) || taken(to))
      throw ConfigError(fmt::format("{}: a device has one port, so only one cable", record.where));
    topology_.cables.emplace_back(from, to);
  }
}

std::uint32_t Loader::cable_end(const Record& record, const char* end) const {
  const auto field = record.fields.find(end);
  if (field == record.fields.end()) throw ConfigError(fmt::format("{}: a cable needs '{}'", record.where, end));
  const auto node = topology_.find_node(field->second.text);
  if (!node)
    throw ConfigError(fmt::format("{}: no host is called '{}'{}", field->second.where, shown(field->second.text),
                                  topology_.switches.empty() ? "" : ", and no such switch"));
  return *node;
}

}  // namespace rnicsim::sim
