// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/ipc/addresses.h"

#include <stdio.h>

#include <array>
#include <atomic>
#include <cstddef>

#include "sim/host/shim/session.h"
#include "sim/host/time/turn.h"

namespace rnicsim::clock {
namespace {

// Number of waiting threads by the hash of their address: a release without waiters makes no call.
constexpr std::size_t kBuckets = 256;
std::array<std::atomic<int>, kBuckets> waiters{};

std::atomic<int>& waiters_at(const void* address) {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  return waiters[(value / 8 ^ value / (8 * kBuckets)) % kBuckets];
}

constinit Starving* starving = nullptr;

}  // namespace

Reason::Reason(abi::ThreadSlot& slot, const char* text) : slot_(slot) {
  snprintf(slot.reason, sizeof slot.reason, "%s", text);
}
Reason::~Reason() { slot_.reason[0] = 0; }

Starving::Starving(const void* address) : address_(address), next_(starving) { starving = this; }
Starving::~Starving() {
  Starving** link = &starving;
  while (*link != nullptr && *link != this) link = &(*link)->next_;
  if (*link == this) *link = next_;
}
bool Starving::any_at(const void* address) {
  for (const Starving* thread = starving; thread != nullptr; thread = thread->next_)
    if (thread->address_ == address) return true;
  return false;
}

void forget_other_waiters() {
  for (auto& count : waiters) count = 0;
  starving = nullptr;
}

int wait_on(abi::ThreadSlot& slot, const void* address, std::uint64_t deadline, Sharing sharing) {
  ++waiters_at(address);
  const int error =
      call(slot, abi::Call::wait_address, {reinterpret_cast<std::uint64_t>(address), deadline, std::uint64_t(sharing)});
  --waiters_at(address);
  return error;
}

bool wake_spinning(abi::ThreadSlot& slot, const void* address) {
  if (waiters_at(address).load() == 0) return false;
  call(slot, abi::Call::wake_address, {reinterpret_cast<std::uint64_t>(address), 1, 0, 1});
  return slot.value != 0;
}

std::uint64_t wake(abi::ThreadSlot& slot, const void* address, std::uint64_t most, Sharing sharing) {
  const bool here = waiters_at(address).load() != 0;
  const bool elsewhere = sharing == Sharing::host && std::atomic_ref(session()->header().shared_waits).load() != 0;
  if (!here && !elsewhere) return 0;
  call(slot, abi::Call::wake_address, {reinterpret_cast<std::uint64_t>(address), most, std::uint64_t(sharing), 0});
  return slot.value;
}

}  // namespace rnicsim::clock
