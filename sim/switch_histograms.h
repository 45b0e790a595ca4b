// SPDX-License-Identifier: Apache-2.0
// Histograms of a switch's queues and pauses in results: docs/results.schema.json.
#pragma once

#include <string>
#include <vector>

#include "sim/results/json.h"

namespace rnicsim::fabric {
struct PortHistograms;
}

namespace rnicsim::sim {

// {"port.h0.p3": {"tx_queue": {...}, "tx_pauses": {...}}}, for the priorities that had frames or were paused. `names`:
// the ports' names.
Json histograms_json(const std::vector<std::string>& names, const std::vector<fabric::PortHistograms>& ports);

}  // namespace rnicsim::sim
