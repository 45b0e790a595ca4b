// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/transactor/pace.h"

#include <algorithm>

#include "model/base/kernel.h"

namespace rnicsim::sim {
namespace {

// An event is due soon when it is due within this time, as with --time=real.
constexpr Duration kNear{5'000'000};
// Limit of the pieces that advance() simulates before the guests' sockets are polled again.
constexpr int kMostPieces = 20;

Duration next_due() {
  auto next = Agenda::next_in_kernel();
  if (const auto* agenda = Agenda::current()) next = std::min(next, agenda->next_alarm());
  return next;
}

}  // namespace

std::optional<std::chrono::nanoseconds> Pace::advance(Duration limit) {
  for (int i = 0; i < kMostPieces; ++i) {
    const auto next = next_due();
    if (next == Agenda::kNever) return std::nullopt;
    if (now() >= limit || sc_core::sc_get_status() == sc_core::SC_STOPPED) return std::chrono::nanoseconds(0);
    if (next - now() <= kNear) {
      run_until(std::min(now() + kNear, limit));
      anchor();
      continue;
    }
    const auto here = present();
    if (next > here) return std::chrono::nanoseconds((next - here).ps / 1000 + 1);
    run_until(std::min(next, limit));
  }
  return std::chrono::nanoseconds(0);
}

void Pace::catch_up(Duration limit) {
  const auto here = std::min(present(), limit);
  if (here > now()) run_until(here);
}

void Pace::anchor() {
  simulated_ = now();
  wall_ = Clock::now();
}

Duration Pace::present() const {
  const std::chrono::nanoseconds passed = Clock::now() - wall_;
  return simulated_ + Duration{passed.count() * 1000};
}

}  // namespace rnicsim::sim
