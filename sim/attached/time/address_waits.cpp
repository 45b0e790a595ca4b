// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/time/address_waits.h"

#include <algorithm>

#include "model/host/memory/mappings.h"

namespace rnicsim::sim {
namespace {

std::optional<SharedWord> shared_word_at(const Process& process, std::uint64_t address) {
  const auto found = host::mappings_of(process.identity().pid, address, 1);
  if (found.empty() || !found.front().shared || found.front().begin > address) return std::nullopt;
  const host::Mapping& mapping = found.front();
  return SharedWord{mapping.device, mapping.inode, mapping.offset + (address - mapping.begin)};
}

}  // namespace

void AddressWaits::wait(Thread& thread, const abi::ThreadSlot& slot, std::optional<Duration> until) {
  const bool shared = slot.argument[2] != 0;
  const auto word = shared ? shared_word_at(*thread.process, slot.argument[0]) : std::nullopt;
  threads_.wait(thread, ThreadState::awaiting_address, until, WaitForAddress{slot.argument[0], word, ++next_ticket_});
  if (word && thread.state == ThreadState::awaiting_address)
    threads_.show_shared_waits(thread.process->identity().host);
}

// The thread that has waited longest is woken first.
Thread* AddressWaits::first_waiter(Process& process, const Wake& wake, const std::optional<SharedWord>& word) {
  Thread* first = nullptr;
  std::uint64_t ticket = 0;
  const auto consider = [&](Process& of) {
    for (Thread& thread : of.threads) {
      const auto* wait = std::get_if<WaitForAddress>(&thread.wait);
      if (wait == nullptr) continue;
      const bool here = word ? wait->shared_word == word : &of == &process && wait->address == wake.address;
      if (!here) continue;
      // The waker is ahead of simulated time; this wait ends before the wake-up.
      if (thread.at && *thread.at < wake.at) continue;
      if (first != nullptr && wait->ticket > ticket) continue;
      first = &thread;
      ticket = wait->ticket;
    }
  };
  if (!word) {
    consider(process);
    return first;
  }
  for (const auto& other : threads_.processes())
    if (other->alive && other->identity().host == process.identity().host) consider(*other);
  return first;
}

// Returns the number of woken threads.
std::uint64_t AddressWaits::wake(Process& process, const Wake& wake) {
  const auto word = wake.shared ? shared_word_at(process, wake.address) : std::nullopt;
  std::uint64_t woken = 0;
  for (; woken != wake.most; ++woken) {
    Thread* first = first_waiter(process, wake, word);
    if (first == nullptr) break;
    const HostTimes& times = threads_.times_of(process);
    threads_.resume(*first, std::max(wake.at, clock_of(*first)) + (wake.spins ? times.detect : times.wakeup));
  }
  return woken;
}

// After the death of a process, which may have held a lock that other processes wait for: they check it again.
void AddressWaits::wake_sharers(std::uint32_t host) {
  for (const auto& process : threads_.processes()) {
    if (!process->alive || process->identity().host != host) continue;
    for (Thread& thread : process->threads)
      if (const auto* wait = std::get_if<WaitForAddress>(&thread.wait); wait != nullptr && wait->shared_word)
        threads_.wake(thread);
  }
}

// The same after the end of a thread, whose locks may be private to its process.
void AddressWaits::wake_all(Process& process) {
  for (Thread& thread : process.threads)
    if (const auto* wait = std::get_if<WaitForAddress>(&thread.wait); wait != nullptr && !wait->shared_word)
      threads_.wake(thread);
  wake_sharers(process.identity().host);
}

}  // namespace rnicsim::sim
