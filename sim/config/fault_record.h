// A fault rule as a [[fault]] table or --fault writes it: docs/faults.md.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "model/fabric/fault_rule.h"
#include "sim/config/toml_file.h"
#include "sim/config/topology.h"

namespace rnicsim::sim {

struct FaultSetting {
  fabric::FaultRule rule;
  Record record;  // as it was written
};

// "drop=1e-3,host=h0" as the table that says the same. ConfigError: not of this form.
Record fault_option(std::string_view text);
// The rule; `number` is its position among all, from 1, for messages. ConfigError: what is wrong with it.
FaultSetting to_fault(const Record& record, const Topology& topology, std::size_t number);
// The rule as --fault takes it.
std::string fault_text(const FaultSetting& fault);
// "dropped by fault rule 2", for a frame's comment in a capture.
std::string fault_comment(const fabric::Fault& fault);

}  // namespace rnicsim::sim
