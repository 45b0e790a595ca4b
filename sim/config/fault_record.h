// SPDX-License-Identifier: Apache-2.0
// A fault rule as written in a [[fault]] table or by --fault: docs/faults.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/fabric/fault_rule.h"
#include "sim/config/toml_file.h"
#include "sim/config/topology.h"

namespace rnicsim::sim {

// A fault of a NIC or its link at a time, independent of frames.
struct Outage {
  enum class Kind : std::uint8_t { link_down, fatal };
  Kind kind;
  std::uint32_t interface;  // index in the topology
  Duration at;
  std::optional<Duration> lasts;  // for link_down; nullopt: to the end of the run
};

struct FaultSetting {
  fabric::FaultRule rule;  // for an outage: a rule that matches no frame
  Record record;           // as written by the user
  std::optional<Outage> outage{};
};

// The table equal to an option such as "drop=1e-3,host=h0". ConfigError: the text has another form.
Record fault_option(std::string_view text);
// `number`: position among all rules, counted from 1, for messages. ConfigError: the rule is not valid.
FaultSetting to_fault(const Record& record, const Topology& topology, std::size_t number);
// The rule in the form of --fault.
std::string fault_text(const FaultSetting& fault);
// Comment for a frame in a capture: "dropped by fault rule 2".
std::string fault_comment(const fabric::Fault& fault);

}  // namespace rnicsim::sim
