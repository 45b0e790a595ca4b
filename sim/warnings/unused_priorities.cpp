// SPDX-License-Identifier: Apache-2.0
#include "sim/warnings/unused_priorities.h"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <utility>

#include "model/base/byte_stream.h"
#include "model/base/ports/priority_map.h"
#include "model/fabric/switch_params.h"
#include "model/nic/blocks.h"
#include "model/nic/nic.h"
#include "model/nic/packets/port.h"
#include "sim/adapter.h"
#include "sim/config/config.h"
#include "sim/processes/boundary.h"
#include "sim/system.h"
#include "sim/warnings/priority_list.h"

namespace rnicsim::sim {
namespace {

using Bits = std::uint32_t;  // a bit for each priority

struct UsedPriorities {
  Bits sent = 0;      // by any port
  Bits markable = 0;  // ECT frames in a switch that marks their priority
};

UsedPriorities used_here(const System& system) {
  UsedPriorities used;
  for (std::size_t i = 0; i < system.adapters(); ++i)
    used.sent |= system.adapter(i).nic().blocks().port.used_priorities();
  for (std::size_t i = 0; i < system.switches(); ++i)
    for (const auto& port : system.switch_port_counters(i)) {
      used.markable |= port.markable;
      for (std::size_t priority = 0; priority < kPriorities; ++priority)
        if (port.most_queue[priority] != 0) used.sent |= 1u << priority;
    }
  return used;
}

UsedPriorities used_by_all(const System& system) {
  auto used = used_here(system);
  auto* boundary = system.boundary();
  if (boundary == nullptr) return used;
  Message own;
  ByteWriter(own).put(used);
  for (const auto& other : boundary->gather(std::move(own))) {
    if (other.empty()) continue;  // of this process
    const auto there = ByteReader(other).take<UsedPriorities>();
    used.sent |= there.sent;
    used.markable |= there.markable;
  }
  return boundary->rank() == 0 ? used : UsedPriorities{};
}

// Priorities by parameter, united over all nodes. A node with all priorities does not count: that is no choice. Nor
// does a priority that no frame can have, because pause_warnings() reports it.
class ChosenPriorities {
 public:
  explicit ChosenPriorities(const Config& config) {
    for (std::size_t i = 0; i < config.topology.interfaces.size(); ++i) {
      const auto nic = config.nic_of(i);
      const auto mapped = nic.port.priorities().used();
      add("nic.port.pfc", nic.port.pfc, mapped);
      add("nic.receive_buffer.pfc", nic.receive_buffer.pfc, mapped);
    }
    for (std::size_t i = 0; i < config.topology.switches.size(); ++i) {
      const auto& params = config.switch_of(i);
      add("switch.pfc.priorities", params.pfc.priorities, params.priority.map().used());
      add("switch.ecn.priorities", params.ecn.priorities, kAllPriorities);
      if (!params.ecn.drop_not_ect) marked |= params.ecn.priorities;
    }
  }

  std::map<std::string, Bits> by_parameter;
  Bits marked = 0;  // by switches on which only marks depend on the length of a queue

 private:
  void add(const char* parameter, Bits bits, Bits mapped) {
    if (bits != kAllPriorities) by_parameter[parameter] |= bits & mapped;
  }
};

}  // namespace

std::vector<std::string> priority_warnings(const System& system) {
  const auto used = used_by_all(system);
  if (used.sent == 0) return {};
  const ChosenPriorities chosen(system.config());
  std::map<Bits, std::string> unused;  // the parameters, by priorities without a frame
  for (const auto& [parameter, bits] : chosen.by_parameter)
    if (const auto without = bits & ~used.sent; without != 0) {
      auto& parameters = unused[without];
      parameters += fmt::format("{}{}", parameters.empty() ? "" : ", ", parameter);
    }
  std::vector<std::string> warnings;
  for (const auto& [bits, parameters] : unused)
    warnings.push_back(fmt::format("{}: no frame of this run has priority {}; frames have priority {}", parameters,
                                   priority_list(bits), priority_list(used.sent)));
  if (const auto bits = chosen.marked & used.sent; bits != 0 && (chosen.marked & used.markable) == 0)
    warnings.push_back(
        fmt::format("switch.ecn.priorities: no frame can be marked, because all frames of priority {} are Not-ECT; "
                    "nic.congestion.ecn = \"forced\" makes them ECT, or the program's traffic class",
                    priority_list(bits)));
  return warnings;
}

}  // namespace rnicsim::sim
