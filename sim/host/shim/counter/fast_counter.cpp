// SPDX-License-Identifier: Apache-2.0
#include "sim/host/shim/counter/fast_counter.h"

#include "sim/host/time/turn.h"

namespace rnicsim::clock {

std::uint64_t fast_counter() {
  abi::ThreadSlot* slot = simulated_slot();
  return slot != nullptr && charge_clock_read_ahead(*slot) ? counter_at(slot->now) : 0;
}

}  // namespace rnicsim::clock
