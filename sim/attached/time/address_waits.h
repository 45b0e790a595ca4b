// SPDX-License-Identifier: Apache-2.0
// Waits of threads for other threads at an address: within a process, or within a host in memory that processes share.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/attached/time/thread_scheduler.h"

namespace rnicsim::sim {

class AddressWaits {
 public:
  explicit AddressWaits(ThreadScheduler& threads) : threads_(threads) {}

  struct Wake {
    std::uint64_t address;
    std::uint64_t most;
    bool shared;
    Duration at;
    bool spins = false;  // the threads do not sleep: they see the word after `detect`
  };
  void wait(Thread& thread, const abi::ThreadSlot& slot, std::optional<Duration> until);
  std::uint64_t wake(Process& process, const Wake& wake);
  void wake_sharers(std::uint32_t host);
  void wake_all(Process& process);

 private:
  Thread* first_waiter(Process& process, const Wake& wake, const std::optional<SharedWord>& word);

  ThreadScheduler& threads_;
  std::uint64_t next_ticket_ = 0;
};

}  // namespace rnicsim::sim
