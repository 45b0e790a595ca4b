// SPDX-License-Identifier: Apache-2.0
#include "sim/recording/trace_header.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/config/config.h"
#include "sim/config/host_record.h"
#include "sim/config/param_list.h"
#include "sim/system.h"

namespace rnicsim::sim {

TraceHeader trace_header(const System& system, std::uint64_t seed, TimeMode time) {
  TraceHeader header;
  header.program = RNICSIM_VERSION;
  header.seed = seed;
  header.time = time == TimeMode::real ? "real" : "sim";
  Config config = system.config();
  const ParamList parameters(config);
  for (const auto& entry : parameters.entries()) header.configuration.emplace_back(entry.path, entry.value_text());
  for (auto& choice : config.choices.settings(config.topology)) header.configuration.push_back(std::move(choice));
  for (const auto& host : config.topology.interfaces) {
    header.hosts.push_back(label_of(host));
    header.configuration.emplace_back(
        fmt::format("hosts.{}", label_of(host)),
        fmt::format("{} {:02x}", ipv4_text(host), fmt::join(std::begin(host.mac), std::end(host.mac), ":")));
  }
  for (std::size_t i = 0; i < config.topology.cables.size(); ++i) {
    const auto& [from, to] = config.topology.cables[i];
    header.configuration.emplace_back(
        fmt::format("cables.{}", i),
        fmt::format("{} - {}", config.topology.node_name(from), config.topology.node_name(to)));
  }
  for (std::size_t i = 0; i < config.faults.size(); ++i)
    header.configuration.emplace_back(fmt::format("faults.{}", i + 1), fault_text(config.faults[i]));
  return header;
}

TraceHeader trace_header(const System& system, const RunOptions& options) {
  auto header = trace_header(system, options.seed, options.time);
  for (const auto& command : options.commands)
    header.commands.push_back(fmt::format("{}: {}", header.hosts[command.host], fmt::join(command.argv, " ")));
  return header;
}

}  // namespace rnicsim::sim
