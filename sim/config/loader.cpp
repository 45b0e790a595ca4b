#include "sim/config/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/config/config_error.h"
#include "sim/config/fault_record.h"
#include "sim/config/host_record.h"
#include "sim/config/settings.h"

namespace rnicsim::sim {
namespace {

namespace fs = std::filesystem;

// Names of switches; none may be that of a host.
std::vector<std::string> switch_names(const std::vector<Record>& records, const Topology& topology) {
  constexpr std::size_t kMost = 64;
  std::vector<std::string> names;
  for (const auto& record : records) {
    for (const auto& [key, field] : record.fields)
      if (key != "name")
        throw ConfigError(fmt::format("{}: a switch has a name, and no {}", field.where, shown(key)));
    const auto name = record.fields.find("name");
    if (name == record.fields.end()) throw ConfigError(fmt::format("{}: a switch needs a name", record.where));
    check_node_name(name->second, "switches");
    const auto& text = name->second.text;
    if (topology.find(text) || std::ranges::find(names, text) != names.end())
      throw ConfigError(fmt::format("{}: '{}' is the name of another node already", record.where, text));
    if (names.size() == kMost) throw ConfigError(fmt::format("{}: more than {} switches", record.where, kMost));
    names.push_back(text);
  }
  return names;
}

}  // namespace

void Loader::load(DataKind kind, const fs::path& path) {
  const auto find = [kind](const std::string& base) { return find_data(kind, base); };
  for (const auto& file : read_with_bases(path, find)) {
    for (const auto& setting : file.settings) apply(params_, setting);
    take_topology(file);
    faults_.insert(faults_.end(), file.faults.begin(), file.faults.end());
  }
}

void Loader::set(std::string_view text) { apply(params_, setting_option(text)); }

void Loader::fault(std::string_view rule) { faults_.push_back(fault_option(rule)); }

// In the order of the hosts, then of the devices: so their numbers are.
void Loader::take_interfaces(const TomlFile& file) {
  if (file.hosts.empty() && file.devices.empty()) return;
  auto& interfaces = topology_.interfaces;
  if (!file.hosts.empty()) topology_ = {};
  for (const auto& record : file.hosts) interfaces.push_back(to_host(record, interfaces.size()));
  for (const auto& record : file.devices) interfaces.push_back(to_device(record, topology_));
  // Switches are numbered behind the interfaces.
  const std::size_t before = interfaces.size() - file.devices.size();
  for (auto& cable : topology_.cables)
    for (std::uint32_t* node : {&cable.first, &cable.second})
      if (*node >= before) *node += static_cast<std::uint32_t>(file.devices.size());
  std::vector<Record> records = file.hosts;
  records.insert(records.end(), file.devices.begin(), file.devices.end());
  check_distinct(interfaces, records);
}

void Loader::take_topology(const TomlFile& file) {
  take_interfaces(file);
  if (!file.switches.empty()) {
    topology_.cables.clear();
    topology_.switches = switch_names(file.switches, topology_);
  }
  if (file.cables.empty()) return;
  topology_.cables.clear();
  std::set<std::uint32_t> connected;
  const auto taken = [&](std::uint32_t node) { return !topology_.is_switch(node) && !connected.insert(node).second; };
  for (const auto& record : file.cables) {
    for (const auto& [key, field] : record.fields)
      if (key != "from" && key != "to")
        throw ConfigError(fmt::format("{}: a cable has from and to, and no {}", field.where, shown(key)));
    const auto from = cable_end(record, "from");
    const auto to = cable_end(record, "to");
    if (from == to && topology_.is_switch(from))
      throw ConfigError(fmt::format("{}: a cable has two ends", record.where));
    if (taken(from) || taken(to))
      throw ConfigError(fmt::format("{}: a device has one port, and so one cable", record.where));
    topology_.cables.emplace_back(from, to);
  }
}

std::uint32_t Loader::cable_end(const Record& record, const char* end) const {
  const auto field = record.fields.find(end);
  if (field == record.fields.end()) throw ConfigError(fmt::format("{}: a cable needs '{}'", record.where, end));
  const auto node = topology_.find_node(field->second.text);
  if (!node)
    throw ConfigError(fmt::format("{}: no host is called '{}'{}", field->second.where, shown(field->second.text),
                                  topology_.switches.empty() ? "" : ", and no switch"));
  return *node;
}

}  // namespace rnicsim::sim
