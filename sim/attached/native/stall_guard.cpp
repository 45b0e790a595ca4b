// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/native/stall_guard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

namespace rnicsim::sim {
namespace {

// Context switches of a waiting thread: as long as the number stays the same, the thread is in the same wait. nullopt:
// the thread runs, lacks a processor, or is stopped.
std::optional<std::uint64_t> wait_of(pid_t thread) {
  std::ifstream in(fmt::format("/proc/self/task/{}/status", thread));
  bool waits = false;
  std::uint64_t switches = 0;
  for (std::string line; std::getline(in, line);) {
    const std::string value = line.substr(std::min(line.size(), line.find_first_not_of(" \t", line.find(':') + 1)));
    if (line.starts_with("State:")) waits = value.starts_with('S') || value.starts_with('D');
    if (line.find("ctxt_switches:") != line.npos) switches += std::stoull(value);
  }
  return waits ? std::optional(switches) : std::nullopt;
}

}  // namespace

pid_t StallGuard::this_thread() {
  thread_local const pid_t number = ::gettid();
  return number;
}

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

// Checks periodically, so that an access need not read a clock.
void StallGuard::watch() {
  std::uint64_t seen = 0;
  std::optional<std::uint64_t> seen_wait;
  int calls = 0;
  std::unique_lock held(lock_);
  while (!ending_.wait_for(held, patience_, [this] { return ends_; })) {
    const auto serial = serial_.load(std::memory_order_acquire);
    const bool under_way = serial % 2 == 1;
    const auto wait = under_way ? wait_of(accessing_.load(std::memory_order_relaxed)) : std::nullopt;
    const bool stalls = wait && serial == seen && wait == seen_wait;
    calls = stalls ? calls + 1 : 0;
    seen = serial;
    seen_wait = wait;
    if (stalls) on_stall_(process_.load(std::memory_order_relaxed), calls);
  }
}

}  // namespace rnicsim::sim
