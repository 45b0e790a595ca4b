// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/time/host_turns.h"

namespace rnicsim::sim {

void HostTurns::begin() {
  while (!keeping_.empty()) keeping_.back()->flush();
}

}  // namespace rnicsim::sim
