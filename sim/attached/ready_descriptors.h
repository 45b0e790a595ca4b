// SPDX-License-Identifier: Apache-2.0
// Ready descriptors of an epoll set, in an order that repeats.
#pragma once

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "sim/os/descriptor.h"

namespace rnicsim::sim {

// Calls `action` for each event of `epoll`, sorted by data.u32 within each batch: the kernel's order differs from run
// to run. Ends when no event is left. The number of rounds is limited, as if each of the `watched` descriptors had
// four events: a program may write without end.
template <class Action>
void for_each_ready(const Descriptor& epoll, std::size_t watched, Action action) {
  std::array<epoll_event, 64> events;
  const std::size_t most_rounds = 4 + 4 * watched / events.size();
  for (std::size_t round = 0; round < most_rounds; ++round) {
    const int count = ::epoll_wait(epoll.get(), events.data(), int(events.size()), 0);
    if (count <= 0) return;
    const auto end = events.begin() + count;
    std::sort(events.begin(), end, [](const auto& a, const auto& b) { return a.data.u32 < b.data.u32; });
    std::for_each(events.begin(), end, action);
  }
}

}  // namespace rnicsim::sim
