// SPDX-License-Identifier: Apache-2.0
#include "sim/switch_histograms.h"

#include <fmt/format.h>

#include "model/fabric/port_histograms.h"

namespace rnicsim::sim {
namespace {

Json lengths_json(const fabric::QueueLengths& lengths) {
  Json bins = Json::array();
  for (const auto& part : lengths.parts())
    bins.push_back({{"from_bytes", part.from}, {"below_bytes", part.below}, {"share", part.share}});
  return {{"mean_bytes", lengths.mean()},
          {"p50_bytes", lengths.percentile(0.5)},
          {"p99_bytes", lengths.percentile(0.99)},
          {"bins", bins}};
}

Json pause_times_json(const fabric::PauseTimes& pauses) {
  Json bins = Json::array();
  for (const auto& part : pauses.parts())
    bins.push_back({{"from_us", part.from_us}, {"below_us", part.below_us}, {"count", part.count}});
  return {{"count", pauses.count()}, {"bins", bins}};
}

}  // namespace

Json histograms_json(const std::vector<std::string>& names, const std::vector<fabric::PortHistograms>& ports) {
  Json json = Json::object();
  for (std::size_t port = 0; port < ports.size(); ++port)
    for (std::size_t priority = 0; priority < kPriorities; ++priority) {
      const auto& lengths = ports[port].lengths[priority];
      const auto& pauses = ports[port].pauses[priority];
      if (!lengths.was_filled() && pauses.count() == 0) continue;
      json[fmt::format("port.{}.p{}", names[port], priority)] = {{"tx_queue", lengths_json(lengths)},
                                                                 {"tx_pauses", pause_times_json(pauses)}};
    }
  return json;
}

}  // namespace rnicsim::sim
