// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/transactor/guest_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace rnicsim::sim {

ServedGuest& GuestLoop::add(const GuestFunction& function) {
  return *guests_.emplace_back(std::make_unique<ServedGuest>(fmt::format("guest{}", guests_.size()), function));
}

void GuestLoop::turn(std::vector<pollfd>& others, std::chrono::nanoseconds longest, Duration limit) {
  const auto idle = pace_.advance(limit);
  wait(others, std::min(idle.value_or(longest), longest), limit);
  for (auto& guest : guests_) guest->serve();
}

void GuestLoop::wait(std::vector<pollfd>& others, std::chrono::nanoseconds longest, Duration limit) {
  watched_ = others;
  for (const auto& guest : guests_) guest->watch(watched_);
  constexpr std::chrono::nanoseconds kSecond = std::chrono::seconds(1);
  const timespec time{longest / kSecond, (longest % kSecond).count()};
  if (::ppoll(watched_.data(), nfds_t(watched_.size()), &time, nullptr) > 0)
    pace_.catch_up(limit);
  else
    for (auto& one : watched_) one.revents = 0;
  std::copy_n(watched_.begin(), std::ptrdiff_t(others.size()), others.begin());
}

}  // namespace rnicsim::sim
