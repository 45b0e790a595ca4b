// A fault rule as a [[fault]] table or --fault writes it: docs/faults.md.
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

// Something that befalls a NIC at a time, and no frame.
struct Outage {
  enum class Kind : std::uint8_t { link_down, fatal };
  Kind kind;
  std::uint32_t interface;      // of the topology
  Duration at;
  std::optional<Duration> lasts;  // link_down; nullopt: for ever
};

struct FaultSetting {
  fabric::FaultRule rule;       // of an outage: one that strikes no frame
  Record record;                // as it was written
  std::optional<Outage> outage{};
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
