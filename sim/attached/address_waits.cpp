// Threads that wait for other threads, at an address: those of a process, or of a host in memory that processes share.
#include <algorithm>
#include <atomic>

#include "model/host/mappings.h"
#include "sim/attached/time_keeper.h"

namespace rnicsim::sim {
namespace {

std::optional<SharedWord> shared_word_at(const Process& process, std::uint64_t address) {
  const auto found = host::mappings_of(process.identity().pid, address, 1);
  if (found.empty() || !found.front().shared || found.front().begin > address) return std::nullopt;
  const host::Mapping& mapping = found.front();
  return SharedWord{mapping.device, mapping.inode, mapping.offset + (address - mapping.begin)};
}

}  // namespace

void TimeKeeper::wait_address(Thread& thread, const abi::ThreadSlot& slot, std::optional<Duration> until) {
  const bool shared = slot.argument[2] != 0;
  const auto word = shared ? shared_word_at(*thread.process, slot.argument[0]) : std::nullopt;
  thread.address = slot.argument[0];
  thread.wait_ticket = ++next_ticket_;
  wait(thread, ThreadState::awaiting_address, until);
  if (!word || thread.state != ThreadState::awaiting_address) return;
  thread.shared_word = word;
  show_shared_waits(thread.process->identity().host);
}

// First come, first woken.
Thread* TimeKeeper::first_waiter(Process& process, const Wake& wake, const std::optional<SharedWord>& word) {
  Thread* first = nullptr;
  const auto consider = [&](Process& of) {
    for (Thread& thread : of.threads) {
      if (thread.state != ThreadState::awaiting_address) continue;
      const bool here = word ? thread.shared_word == word : &of == &process && thread.address == wake.address;
      if (!here) continue;
      if (thread.at && *thread.at < wake.at) continue;  // the waker is ahead of the world: by then this wait has ended
      if (first == nullptr || thread.wait_ticket < first->wait_ticket) first = &thread;
    }
  };
  if (!word) {
    consider(process);
    return first;
  }
  for (const auto& other : processes_)
    if (other->alive && other->identity().host == process.identity().host) consider(*other);
  return first;
}

// How many it woke.
std::uint64_t TimeKeeper::wake_address(Process& process, const Wake& wake) {
  const auto word = wake.shared ? shared_word_at(process, wake.address) : std::nullopt;
  std::uint64_t woken = 0;
  for (; woken != wake.most; ++woken) {
    Thread* first = first_waiter(process, wake, word);
    if (first == nullptr) break;
    const HostTimes& times = times_of(process);
    resume(*first, std::max(wake.at, clock_of(*first)) + (wake.spins ? times.detect : times.wakeup));
  }
  return woken;
}

// Somebody died, who may have had what they wait for: they look again.
void TimeKeeper::wake_sharers(std::uint32_t host) {
  for (const auto& process : processes_) {
    if (!process->alive || process->identity().host != host) continue;
    for (Thread& thread : process->threads)
      if (thread.shared_word) wake(thread);
  }
}

// The same of a thread, whose mutexes may be its process's alone.
void TimeKeeper::wake_all(Process& process) {
  for (Thread& thread : process.threads)
    if (thread.state == ThreadState::awaiting_address && !thread.shared_word)
      wake(thread);
  wake_sharers(process.identity().host);
}

// A process whose host has none makes no call to wake them.
void TimeKeeper::show_shared_waits(std::uint32_t host) {
  std::uint32_t waits = 0;
  const auto of_host = [&](const auto& process) { return process->alive && process->identity().host == host; };
  for (const auto& process : processes_)
    if (of_host(process))
      waits += std::uint32_t(
          std::ranges::count_if(process->threads, [](const Thread& thread) { return bool(thread.shared_word); }));
  for (const auto& process : processes_)
    if (of_host(process)) std::atomic_ref(process->header().shared_waits).store(waits);
}

}  // namespace rnicsim::sim
