// SPDX-License-Identifier: Apache-2.0
#include "sim/report/shipped.h"

#include <algorithm>

#include "sim/config/config.h"
#include "sim/config/config_error.h"
#include "sim/config/data_files.h"
#include "sim/config/param_list.h"

namespace rnicsim::sim::report {
namespace {

// A file that is not shipped is not compared: the path may lead to another file on this machine.
bool is_shipped(DataKind kind, const std::string& name) { return std::ranges::count(data_names(kind), name) != 0; }

}  // namespace

Json shipped_json(const std::string& nic, const std::string& host, const std::string& topology,
                  const std::map<std::string, std::string>& configuration) {
  if (!is_shipped(DataKind::nic, nic)) return {{"unknown", "'" + nic + "' is not a NIC profile of rnicsim"}};
  if (!host.empty() && !is_shipped(DataKind::host, host))
    return {{"unknown", "'" + host + "' is not a host profile of rnicsim"}};
  // "star:12" has no file of its own; its parameters are those of the shipped file "star".
  const auto file = topology.substr(0, topology.find(':'));
  if (!is_shipped(DataKind::topology, file)) return {{"unknown", "'" + topology + "' is not a topology of rnicsim"}};
  auto differs = Json::object();
  try {
    Config config = load_config(nic, topology, {}, {}, host);
    const ParamList list(config);
    for (const auto& entry : list.entries()) {
      const auto found = configuration.find(entry.path);
      if (found != configuration.end() && found->second != entry.value_text()) differs[entry.path] = entry.value_text();
    }
  } catch (const ConfigError& error) {
    return {{"unknown", error.what()}};
  }
  return {{"nic", nic}, {"topology", topology}, {"differs", std::move(differs)}};
}

}  // namespace rnicsim::sim::report
