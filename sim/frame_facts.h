// SPDX-License-Identifier: Apache-2.0
// Header fields of a RoCE frame for fault rules. The fabric itself does not parse frames.
#pragma once

#include <optional>

#include "model/fabric/fault_rules.h"

namespace rnicsim::sim {

// nullopt: not a RoCEv2 packet. The management message is an index of cm::kMessageNames.
std::optional<fabric::FrameFacts> frame_facts(const Frame& frame);

}  // namespace rnicsim::sim
