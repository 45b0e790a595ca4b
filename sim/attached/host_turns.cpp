#include "sim/attached/host_turns.h"

#include "sim/attached/process_memory.h"

namespace rnicsim::sim {

void HostTurns::begin() {
  while (!keeping_.empty()) keeping_.back()->flush();
}

}  // namespace rnicsim::sim
