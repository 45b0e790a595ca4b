// What fault rules can know of a RoCE frame: the fabric itself knows bytes only.
#pragma once

#include <optional>

#include "model/fabric/fault_rules.h"

namespace rnicsim::sim {

// nullopt: not a RoCEv2 packet. Its management message is numbered as cm::kMessageNames.
std::optional<fabric::FrameFacts> frame_facts(const Frame& frame);

}  // namespace rnicsim::sim
