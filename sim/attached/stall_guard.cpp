#include "sim/attached/stall_guard.h"

#include <utility>

namespace rnicsim::sim {

StallGuard::StallGuard(std::chrono::milliseconds patience, OnStall on_stall)
    : patience_(patience), on_stall_(std::move(on_stall)), thread_([this] { watch(); }) {}

StallGuard::~StallGuard() {
  {
    const std::lock_guard held(lock_);
    ends_ = true;
  }
  ending_.notify_all();
  thread_.join();
}

// It looks now and then: an access pays for no clock.
void StallGuard::watch() {
  std::uint64_t seen = 0;
  int calls = 0;
  std::unique_lock held(lock_);
  while (!ending_.wait_for(held, patience_, [this] { return ends_; })) {
    const auto serial = serial_.load(std::memory_order_acquire);
    const bool stalls = serial % 2 == 1 && serial == seen;
    calls = stalls ? calls + 1 : 0;
    seen = serial;
    if (stalls) on_stall_(process_.load(std::memory_order_relaxed), calls);
  }
}

}  // namespace rnicsim::sim
