// SPDX-License-Identifier: Apache-2.0
// `rnicsim describe`: every parameter and counter with unit, default and meaning.
#pragma once

#include <optional>
#include <string>

#include "sim/config/config.h"
#include "sim/run_options.h"

namespace rnicsim::sim {

enum class DescribeTopic { nic, host, topology, counters, everything };

// Describes the parameters with the values of the NIC profile, host profile and topology in `options`.
std::string describe(DescribeTopic topic, const RunOptions& options);

}  // namespace rnicsim::sim
