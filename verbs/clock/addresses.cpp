#include "verbs/clock/addresses.h"

#include <atomic>

#include "verbs/clock/attach.h"
#include "verbs/clock/turn.h"

namespace rnicsim::clock {
namespace {

// A release with nobody waiting makes no call.
std::atomic<int> waiters{0};

}  // namespace

int wait_on(abi::ThreadSlot& slot, const void* address, std::uint64_t deadline, Sharing sharing) {
  ++waiters;
  const int error = call(slot, abi::Call::wait_address,
                         {reinterpret_cast<std::uint64_t>(address), deadline, std::uint64_t(sharing)});
  --waiters;
  return error;
}

std::uint64_t wake(abi::ThreadSlot& slot, const void* address, std::uint64_t most, Sharing sharing) {
  const bool here = waiters.load() != 0;
  const bool elsewhere =
      sharing == Sharing::host && std::atomic_ref(session()->header().shared_waits).load() != 0;
  if (!here && !elsewhere) return 0;
  call(slot, abi::Call::wake_address, {reinterpret_cast<std::uint64_t>(address), most, std::uint64_t(sharing)});
  return slot.value;
}

}  // namespace rnicsim::clock
