// SPDX-License-Identifier: Apache-2.0
#include "sim/host/shim/noted_calls.h"

#include <atomic>
#include <cstdint>

#include "sim/host/shim/session.h"

namespace rnicsim::clock {

void note_real_call(long number) {
  if (!simulated()) return;
  std::uint32_t none = 0;
  std::atomic_ref(session()->header().real_call).compare_exchange_strong(none, std::uint32_t(number) + 1);
}

}  // namespace rnicsim::clock
