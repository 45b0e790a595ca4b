// SPDX-License-Identifier: Apache-2.0
#include "sim/warnings/control_settings.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "sim/config/config.h"

namespace rnicsim::sim {
namespace {

// Sources of a control's inputs.
struct InputSources {
  bool switches = false;
  bool marks = false;
  bool cnps_on_loss = false;
};

InputSources input_sources(const Config& config) {
  InputSources sources{.switches = !config.topology.switches.empty()};
  for (std::size_t i = 0; i < config.topology.switches.size(); ++i)
    sources.marks |= config.switch_of(i).ecn.priorities != 0;
  for (std::size_t i = 0; i < config.topology.interfaces.size(); ++i)
    sources.cnps_on_loss |= config.nic_of(i).congestion.np.cnp_on_loss;
  return sources;
}

std::string missing_input(const nic::NicParams& nic, const InputSources& sources) {
  const auto& congestion = nic.congestion;
  const auto needs = congestion.inputs(nic.port.rate);
  if (needs.cnps && !sources.marks && !sources.cnps_on_loss && !congestion.cnp_on_retransmit)
    return "there are no CNPs: no switch marks packets (switch.ecn.priorities), and neither "
           "nic.congestion.np.cnp_on_loss nor nic.congestion.cnp_on_retransmit is true";
  if (needs.marks && !sources.marks) return "no switch marks packets (switch.ecn.priorities), so only losses slow down";
  if (needs.telemetry && !sources.switches) return "the topology has no switch that reports its ports";
  return {};
}

}  // namespace

std::vector<std::string> control_warnings(const Config& config) {
  const auto sources = input_sources(config);
  std::set<std::pair<std::string, std::string>> found;
  for (std::size_t i = 0; i < config.topology.interfaces.size(); ++i) {
    const auto nic = config.nic_of(i);
    if (auto why = missing_input(nic, sources); !why.empty())
      found.emplace(nic.congestion.control.name, std::move(why));
  }
  std::vector<std::string> warnings;
  for (const auto& [control, why] : found)
    warnings.push_back(fmt::format("nic.congestion.control is {}, but {}", control, why));
  return warnings;
}

}  // namespace rnicsim::sim
