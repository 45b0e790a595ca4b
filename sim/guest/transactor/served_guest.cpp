// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/transactor/served_guest.h"

#include <fmt/format.h>

#include "sim/guest/transactor/guest_connection.h"

namespace rnicsim::sim {

void ServedGuest::watch(std::vector<pollfd>& watched) const {
  if (client_) client_->watch(watched);
}

void ServedGuest::serve() try {
  if (client_) client_->serve();
} catch (const ConnectionLost& lost) {
  client_.reset();
  port_.clear();
  port_.say(fmt::format("{}: {}; the device is reset", port_.label(), lost.what()));
}

std::string ServedGuest::state() const {
  const auto& counters = port_.counters();
  return fmt::format("  {}: {}, {} BAR accesses, {} of configuration space, {} interrupts, {} DMA requests refused\n",
                     port_.label(), is_connected() ? "connected" : "no client is connected", counters.bar_accesses,
                     counters.config_accesses, counters.interrupts, counters.dma_refused);
}

}  // namespace rnicsim::sim
