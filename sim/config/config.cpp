// SPDX-License-Identifier: Apache-2.0
#include "sim/config/config.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/config_error.h"
#include "sim/config/data_files.h"
#include "sim/config/host_record.h"
#include "sim/config/idle_settings.h"
#include "sim/config/loader.h"
#include "sim/config/param_list.h"
#include "sim/config/sized_topology.h"
#include "sim/config/toml_file.h"

namespace rnicsim::sim {
namespace {

template <class Params>
const Params& named(const ProfilesOf<Params>& profiles, const std::string* name, const Params& standard) {
  return name != nullptr ? profiles.by_name.at(*name) : standard;
}

const host::HostParams& host_named(const Config& config, const std::string* type) {
  return type != nullptr ? config.profiles.host_types.by_name.at(*type).params : config.host;
}

// Checks a NIC against its host: the NIC needs one event queue more than the host's completion vectors.
void refuse_vectors(ParamVisitor& visit, const nic::NicParams& nic, const std::string& nic_path,
                    const host::HostParams& host, const std::string& host_path) {
  visit.refuse(nic.capabilities.max_eq < host.event_queues(), (nic_path + ".capabilities.max_eq").c_str(),
               "does not follow, for other events, on", (host_path + ".completion_vectors").c_str());
}

std::string path_of(const char* group, const std::string* name, const char* standard) {
  return name != nullptr ? fmt::format("{}.{}", group, *name) : standard;
}

bool same(const nic::PortParams& a, const nic::PortParams& b) {
  return a.rate == b.rate && a.overhead == b.overhead && a.least_frame == b.least_frame;
}

// Two NICs with a cable between them must have equal ports. A switch's port takes the values of the NIC's port.
void check_ports(const Config& config) {
  const auto& topology = config.topology;
  for (std::size_t i = 0; i < topology.cables.size(); ++i) {
    const auto [from, to] = topology.cables[i];
    if (topology.is_switch(from) || topology.is_switch(to) || config.choices.of_cable(i, "ports") != nullptr) continue;
    const auto a = config.nic_of(from).port, b = config.nic_of(to).port;
    if (!same(a, b))
      throw ConfigError(fmt::format(
          "cables.{}-{}: the ends do not match: the port of {} has {}, {} overhead for each frame, at least {}; the "
          "port of {} has {}, {}, {}; set one port for both ends, as in cables.{}-{}.port (docs/topology.md)",
          topology.node_name(from), topology.node_name(to), topology.node_name(from), to_string(a.rate),
          to_string(a.overhead), to_string(a.least_frame), topology.node_name(to), to_string(b.rate),
          to_string(b.overhead), to_string(b.least_frame), topology.node_name(from), topology.node_name(to)));
  }
}

// Checks each switch with its number of ports, on which its reserved bytes depend.
void check_switches(const Config& config) {
  const auto& topology = config.topology;
  std::vector<std::size_t> ports(topology.switches.size());
  for (const auto& [from, to] : topology.cables)
    for (const auto node : {from, to})
      if (topology.is_switch(node)) ++ports[node - topology.interfaces.size()];
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const auto& params = config.switch_of(i);
    const auto reserved = params.reserved_bytes(ports[i]);
    if (params.buffer.size.bytes == 0 || reserved < params.buffer.size.bytes) continue;
    throw ConfigError(fmt::format(
        "switch.buffer.size: {} of {} is not above the {} that lossless.size and lossy.size reserve for its {} ports",
        to_string(params.buffer.size), topology.switches[i], to_string(ByteCount{reserved}), ports[i]));
  }
}

// Without engines of their own, all NICs are limited by [engine]; otherwise nic_of() limits each NIC.
void limit_to_engines(Config& config) {
  auto capabilities = config.nic.capabilities;
  config.engine.limit(capabilities);
  config.engine.check(config.nic.transport);
  bool own = false;
  config.choices.each("engines", [&](const Setting&) { own = true; });
  if (!own) config.nic.capabilities = capabilities;
  config.choices.each("engines", [&](const Setting& choice) {
    auto engine = config.engine;
    engine.kind = choice.text;
    try {
      engine.limit(capabilities);
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("{}: {}", choice.where, error.what()));
    }
  });
}

}  // namespace

EngineParams Config::engine_of(std::size_t interface) const {
  auto own = engine;
  if (choices.empty()) return own;
  if (const auto* kind = choices.of_node(label_of(topology.interfaces[interface]), "engines")) own.kind = *kind;
  return own;
}

nic::NicParams Config::nic_of(std::size_t interface) const {
  if (choices.empty()) return nic;
  const auto label = label_of(topology.interfaces[interface]);
  auto own = named(profiles.nics, choices.of_node(label, "nics"), nic);
  if (const auto cable = cables_of[interface])
    own.port = named(profiles.ports, choices.of_cable(*cable, "ports"), own.port);
  if (const auto* type = choices.of_node(topology.interfaces[interface].name, "host_types"))
    profiles.host_types.by_name.at(*type).pcie.put_into(own.dma);
  const auto engine = engine_of(interface);
  engine.limit(own.capabilities);
  engine.check(own.transport);
  return own;
}

const host::HostParams& Config::host_of(std::size_t number) const {
  if (choices.empty()) return host;
  return host_named(*this, choices.of_node(topology.interfaces[number].name, "host_types"));
}

const fabric::SwitchParams& Config::switch_of(std::size_t index) const {
  return named(profiles.switch_types, choices.of_node(topology.switches[index], "switch_types"), switches);
}

const fabric::LinkParams& Config::link_of(std::size_t cable) const {
  return named(profiles.links, choices.of_cable(cable, "links"), link);
}

nic::PortParams Config::port_of(std::size_t cable) const {
  if (const auto* name = choices.of_cable(cable, "ports")) return profiles.ports.by_name.at(*name);
  const auto [from, to] = topology.cables[cable];
  if (topology.is_switch(from) && topology.is_switch(to)) return nic.port;
  return nic_of(topology.is_switch(from) ? to : from).port;
}

EngineParams Config::engine_shown() const {
  auto shown = engine;
  choices.each("engines", [&](const Setting& choice) {
    if (shown.is_model()) shown.kind = choice.text;
  });
  return shown;
}

void Config::describe(ParamVisitor& visit) {
  visit.group("nic", nic);
  visit.group("host", host);
  visit.group("link", link);
  visit.group("switch", switches);
  visit.group("network", network);
  visit.group("engine", engine);
  profiles.describe(visit);
  visit.idle(topology.switches.empty(), {"switch"}, "the topology has no switch");
  const bool is_tree = topology.cables.size() < topology.interfaces.size() + topology.switches.size();
  visit.idle(is_tree, {"switch.path", "switch.ecmp", "switch.spray", "switch.flowlet", "switch.adaptive"},
             "the topology has one path between any two hosts");
  refuse_vectors(visit, nic, "nic", host, "host");
  std::set<std::pair<std::string, std::string>> checked;
  for (const auto& interface : topology.interfaces) {
    if (choices.empty()) break;
    const auto* nic_name = choices.of_node(label_of(interface), "nics");
    const auto* host_name = choices.of_node(interface.name, "host_types");
    const auto nic_path = path_of("nics", nic_name, "nic"), host_path = path_of("host_types", host_name, "host");
    if (!checked.emplace(nic_path, host_path).second) continue;
    refuse_vectors(visit, named(profiles.nics, nic_name, nic), nic_path, host_named(*this, host_name), host_path);
  }
}

void settle(Config& config, const Loader& loader) {
  const auto& topology = config.topology;
  config.host_profile = loader.host();
  config.choices = loader.choices();
  config.profiles = loader.profiles().resolve(
      config.choices, {config.nic, config.host, config.link, config.switches, loader.root_complex()});
  config.cables_of.resize(topology.interfaces.size());
  for (std::size_t i = 0; i < topology.cables.size(); ++i)
    for (const auto node : {topology.cables[i].first, topology.cables[i].second})
      if (!topology.is_switch(node)) config.cables_of[node] = i;
  limit_to_engines(config);
  check_ports(config);
  check_switches(config);
}

Config load_config(std::string_view nic, std::string_view topology, std::span<const std::string> sets,
                   std::span<const std::string> faults, std::string_view host) {
  Config config;
  const ParamList params(config);
  Loader loader(params, config.topology);
  loader.load(DataKind::nic, find_data(DataKind::nic, nic));
  if (!host.empty()) loader.choose_host(host);
  if (auto sized = sized_topology(topology))
    config.topology = std::move(*sized);
  else
    loader.load(DataKind::topology, find_data(DataKind::topology, topology));
  for (const auto& set : sets) loader.set(set);
  for (const auto& fault : faults) loader.fault(fault);
  settle(config, loader);
  if (const auto contradiction = ParamList(config).contradiction()) throw ConfigError(*contradiction);
  Config standard;
  config.warnings = settings_without_effect(ParamList(config), ParamList(standard), loader.own_settings());
  // RoCE has no LIDs: without lid_paths they are 0.
  for (auto& interface : config.topology.interfaces)
    if (!config.host_of(interface.host).lid_paths) interface.lid = 0;
  if (config.topology.interfaces.empty()) throw ConfigError(std::string(topology) + ": a topology without hosts");
  for (const auto& record : loader.faults())
    config.faults.push_back(to_fault(record, config.topology, config.faults.size() + 1));
  return config;
}

std::string engines_text(const Config& config) {
  if (config.engine_shown().is_model()) return "";
  auto text = config.engine.kind;
  for (std::size_t i = 0; i < config.topology.interfaces.size(); ++i)
    if (const auto own = config.engine_of(i); own.kind != config.engine.kind)
      text += fmt::format(", {} {}", label_of(config.topology.interfaces[i]), own.kind);
  return text;
}

std::string to_toml(Config& config) {
  const ParamList params(config);
  TomlFile file;
  for (const auto& entry : params.entries()) {
    const auto type = entry.is_number()                 ? Setting::Type::number
                      : entry.kind() == "true or false" ? Setting::Type::boolean
                                                        : Setting::Type::text;
    file.settings.push_back({entry.path, type, entry.value_text(), ""});
  }
  const auto& topology = config.topology;
  const auto put = [](Record& record, const char* key, const std::string* text) {
    if (text != nullptr) record.fields[key] = {key, Setting::Type::text, *text, ""};
  };
  for (const auto& interface : topology.interfaces) {
    auto record = to_record(interface);
    const auto label = label_of(interface);
    put(record, "nic", config.choices.of_node(label, "nics"));
    put(record, "engine", config.choices.of_node(label, "engines"));
    put(record, "type", config.choices.of_node(label, "host_types"));
    (interface.device == 0 ? file.hosts : file.devices).push_back(std::move(record));
  }
  for (const auto& name : topology.switches) {
    put(file.switches.emplace_back(), "name", &name);
    put(file.switches.back(), "type", config.choices.of_node(name, "switch_types"));
  }
  for (std::size_t i = 0; i < topology.cables.size(); ++i) {
    const auto from = topology.node_name(topology.cables[i].first), to = topology.node_name(topology.cables[i].second);
    auto& record = file.cables.emplace_back();
    put(record, "from", &from);
    put(record, "to", &to);
    put(record, "link", config.choices.of_cable(i, "links"));
    put(record, "port", config.choices.of_cable(i, "ports"));
  }
  for (const auto& fault : config.faults) file.faults.push_back(fault.record);
  return write_toml(file);
}

}  // namespace rnicsim::sim
