#include "verbs/clock/addresses.h"

#include <atomic>

#include "verbs/clock/turn.h"

namespace rnicsim::clock {
namespace {

// A release with nobody waiting makes no call.
std::atomic<int> waiters{0};

}  // namespace

int wait_on(abi::ThreadSlot& slot, const void* address, std::uint64_t deadline) {
  ++waiters;
  const int error = call(slot, abi::Call::wait_address, {reinterpret_cast<std::uint64_t>(address), deadline});
  --waiters;
  return error;
}

std::uint64_t wake(abi::ThreadSlot& slot, const void* address, std::uint64_t most) {
  if (waiters.load() == 0) return 0;
  call(slot, abi::Call::wake_address, {reinterpret_cast<std::uint64_t>(address), most});
  return slot.value;
}

}  // namespace rnicsim::clock
