// SPDX-License-Identifier: Apache-2.0
#include "sim/describe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "sim/adapter.h"
#include "sim/adapter_counters.h"
#include "sim/config/data_files.h"
#include "sim/config/host_record.h"
#include "sim/config/param_list.h"
#include "sim/config/profiles/profile_notes.h"
#include "sim/config/sized_topology.h"
#include "sim/results/counter_list.h"
#include "sim/system.h"

namespace rnicsim::sim {
namespace {

std::string parameters(Config& config, std::string_view group) {
  const ParamList list(config);
  std::size_t path_width = 0, value_width = 0;
  for (const auto& entry : list.entries()) {
    path_width = std::max(path_width, entry.path.size());
    value_width = std::max(value_width, entry.value_text().size());
  }
  std::string text;
  for (const auto& entry : list.entries())
    if (entry.path.starts_with(group))
      text += fmt::format("{:<{}}  {:<13}  {:>{}}  {}{}\n", entry.path, path_width, entry.kind(), entry.value_text(),
                          value_width, entry.meaning,
                          entry.words.empty() ? "" : fmt::format(" (one of {})", fmt::join(entry.words, ", ")));
  return text;
}

std::string counters(const CounterList& list) {
  std::size_t path_width = 0, unit_width = 0;
  for (const auto& entry : list.entries()) {
    path_width = std::max(path_width, entry.path.size());
    unit_width = std::max(unit_width, entry.unit.size());
  }
  std::string text;
  for (const auto& entry : list.entries())
    text += fmt::format("{:<{}}  {:<{}}  {}\n", entry.path, path_width, entry.unit, unit_width, entry.meaning);
  return text;
}

// Name of a shipped profile with its text. A NIC defined by a table of the topology has no file: only its name.
std::string named_nic(const std::string& name) {
  const auto names = data_names(DataKind::nic);
  return std::ranges::find(names, name) != names.end() ? nic_text(name) : name;
}

std::string hosts(const Config& config) {
  const Topology& topology = config.topology;
  std::string text;
  const auto own = [](std::initializer_list<std::pair<const char*, const std::string*>> choices) {
    std::string chosen;
    for (const auto& [key, name] : choices)
      if (name != nullptr)
        chosen += fmt::format("  {} {}", key, key == std::string_view("nic") ? named_nic(*name) : *name);
    return chosen;
  };
  const auto& choices = config.choices;
  for (const auto& host : topology.interfaces) {
    const auto label = label_of(host);
    text += fmt::format("{:<6} {:<8}  {}/{}  {}/{}  {}{}\n", host.device == 0 ? "host" : "device", label,
                        ipv4_text(host), host.ipv4_prefix, ipv6_text(host), host.ipv6_prefix, mac_text(host),
                        own({{"nic", choices.of_node(label, "nics")},
                             {"type", choices.of_node(label, "host_types")},
                             {"engine", choices.of_node(label, "engines")}}));
  }
  for (const auto& name : topology.switches)
    text += fmt::format("switch {}{}\n", name, own({{"type", choices.of_node(name, "switch_types")}}));
  for (std::size_t i = 0; i < topology.cables.size(); ++i)
    text += fmt::format("cable {} - {}{}\n", topology.node_name(topology.cables[i].first),
                        topology.node_name(topology.cables[i].second),
                        own({{"link", choices.of_cable(i, "links")}, {"port", choices.of_cable(i, "ports")}}));
  for (std::size_t i = 0; i < config.faults.size(); ++i)
    text +=
        fmt::format("fault rule {}: {}  ({})\n", i + 1, fault_text(config.faults[i]), config.faults[i].record.where);
  return text;
}

std::vector<std::string> nic_texts() {
  auto names = data_names(DataKind::nic);
  std::ranges::transform(names, names.begin(), nic_text);
  return names;
}

std::string of_host(const char* before, const Config& config) {
  return config.host_profile.empty() ? "" : before + config.host_profile;
}

}  // namespace

std::string describe(DescribeTopic topic, const RunOptions& options) {
  Config config = load_config(options.nic, options.topology, options.sets, options.faults, options.host);
  for (const auto& warning : config.warnings) fmt::print(stderr, "rnicsim: warning: {}\n", warning);
  const bool all = topic == DescribeTopic::everything;
  std::string text;
  if (all || topic == DescribeTopic::nic)
    text += fmt::format("NIC profiles: {}\nParameters, with the values of {}{}:\n\n{}\n", fmt::join(nic_texts(), ", "),
                        nic_text(options.nic), of_host(" on ", config),
                        parameters(config, "nic.") + parameters(config, "engine.") + parameters(config, "nics."));
  if (all || topic == DescribeTopic::host)
    text += fmt::format("Host profiles: {}\nA host's parameters{}:\n\n{}\n",
                        fmt::join(data_names(DataKind::host), ", "), of_host(", with the values of ", config),
                        parameters(config, "host.") + parameters(config, "host_types."));
  if (all || topic == DescribeTopic::topology)
    text +=
        fmt::format("Topologies: {}, {}\n{}:\n\n{}\nIts parameters:\n\n{}{}{}{}\n",
                    fmt::join(data_names(DataKind::topology), ", "), kSizedTopologies, options.topology, hosts(config),
                    parameters(config, "link."), parameters(config, "switch."), parameters(config, "network."),
                    parameters(config, "links.") + parameters(config, "switch_types.") + parameters(config, "ports."));
  if (all || topic == DescribeTopic::counters)
    text += fmt::format(
        "Counters of a host:\n\n{}\nOf a switch:\n\n{}\n"
        "What follows from them: hit_rate of hits and misses, l0_hit_rate and l1_hit_rate of a cache's levels,\n"
        "each of what was looked for there; in bench also _share of what is busy, of one unit on average, and\n"
        "_rate of bytes.\n",
        counters(CounterList(AdapterCounters{})), counters(CounterList(fabric::SwitchCounters{})));
  return text;
}

}  // namespace rnicsim::sim
