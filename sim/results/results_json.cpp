// SPDX-License-Identifier: Apache-2.0
#include "sim/results/results_json.h"

#include <cstdint>

#include "sim/config/config.h"
#include "sim/config/fault_record.h"
#include "sim/config/param_list.h"

namespace rnicsim::sim {
namespace {}  // namespace

Json results_of_command(std::string_view command) {
  return {{"schema", kResultsSchema}, {"command", command}, {"rnicsim", RNICSIM_VERSION}};
}

Json counters_json(const std::vector<CounterResult>& counters) {
  Json json = {{"counters", Json::object()}, {"derived", Json::object()}};
  for (const auto& counter : counters) {
    if (counter.derived())
      json["derived"][counter.path] = counter.known ? Json(counter.value) : nullptr;
    else
      json["counters"][counter.path] = static_cast<std::uint64_t>(counter.value);
  }
  return json;
}

Json parameters_json(const Config& config) {
  Config copy = config;  // ParamList needs a value that can change
  auto json = Json::object();
  const ParamList list(copy);
  for (const auto& entry : list.entries()) json[entry.path] = entry.value_text();
  for (const auto& [path, name] : copy.choices.settings(copy.topology)) json[path] = name;
  return json;
}

Json faults_json(const Config& config) {
  auto json = Json::array();
  for (const auto& fault : config.faults) json.push_back(fault_text(fault));
  return json;
}

}  // namespace rnicsim::sim
