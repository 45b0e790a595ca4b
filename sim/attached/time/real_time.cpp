// SPDX-License-Identifier: Apache-2.0
// --time=real: programs run freely on the real clock, and the simulation runs as fast as it can. Calls and posted
// writes are served when they come. Events at most kNear ahead (such as packets on their way) happen at once; later
// ones (such as retransmission timers) wait for the real clock.

#include <poll.h>

#include <algorithm>
#include <chrono>

#include "sim/attached/network/outside_world.h"
#include "sim/attached/time/time_keeper.h"

namespace rnicsim::sim {
namespace {

using abi::ThreadSlot;
using Clock = std::chrono::steady_clock;

constexpr Duration kNear{5'000'000};
constexpr auto kSpinTime = std::chrono::microseconds(50);
constexpr int kNapMs = 1;

std::atomic<std::uint32_t>& sleeps_word(const Process& process) {
  return *reinterpret_cast<std::atomic<std::uint32_t>*>(process.control().data() + abi::kDoorbellWord);
}

}  // namespace

void TimeKeeper::step_real() {
  threads_.run_due_actions();
  if (outside != nullptr) outside->work();
  while (Thread* thread = threads_.next_due()) {
    threads_.unschedule(*thread);
    const auto state = thread->state;
    if (state == ThreadState::awaiting_descriptors || state == ThreadState::awaiting_address)
      thread->process->slot(thread->index).error = ETIMEDOUT;
    grant(*thread);
    threads_.set_running(nullptr);
  }
  const bool served = serve_slots();
  const Duration next = time_to_next();
  const bool goes_on = !served && (next <= kNear || await_input(next));
  threads_.step_at(goes_on ? now() + next : now());
  Agenda::current()->yield();  // lets the kernel's other processes run
}

// Time until the next event of the simulation or deadline of a thread.
Duration TimeKeeper::time_to_next() const {
  auto next = std::min(Agenda::current()->next_alarm(), Agenda::next_in_kernel());
  if (!threads_.timed().empty()) next = std::min(next, *(*threads_.timed().begin())->at);
  return next - now();
}

// Serves the calls and posted writes in the programs' slots. True: there were some.
bool TimeKeeper::serve_slots() {
  bool served = false;
  for (std::size_t i = 0; i < threads_.processes().size(); ++i) {
    Process& process = *threads_.processes()[i];
    if (!process.alive) continue;
    for (std::size_t index = 0; index < process.threads.size() && process.alive; ++index) {
      Thread& thread = process.threads[index];
      if (thread.state != ThreadState::running) continue;
      ThreadSlot& slot = process.slot(std::uint32_t(index));
      const bool called = slot.turn.load(std::memory_order_acquire) == ThreadSlot::kKernel;
      const bool posted =
          slot.mmio_produced.load(std::memory_order_acquire) != slot.mmio_consumed.load(std::memory_order_relaxed);
      if (!called && !posted) continue;
      served = true;
      slot.now = std::uint64_t(now().ps);
      take_posted(thread);
      if (called && slot.call != abi::Call::sync && !execute(thread)) break;
      if (called && process.alive) {
        grant(thread);
        threads_.set_running(nullptr);
      }
    }
  }
  return served;
}

bool TimeKeeper::all_sleep() const {
  const auto sleeps = [this](const Thread& thread) {
    if (thread.state == ThreadState::starting) return false;
    if (thread.state != ThreadState::running) return true;
    return thread.process->slot(thread.index).turn != ThreadSlot::kKernel && programs_.sleeps(thread);
  };
  return std::ranges::all_of(threads_.processes(), [&](const auto& process) {
    return !process->alive || std::ranges::all_of(process->threads, sleeps);
  });
}

// Waits for input from programs for at most kSpinTime plus kNapMs. True: the real clock has reached the next event.
bool TimeKeeper::await_input(Duration next) {
  const auto idle_since = Clock::now();
  if (idle_next_ != now() + next) {
    idle_next_ = now() + next;
    idle_start_ = idle_since;
  }
  const auto due = idle_start_ + std::chrono::nanoseconds(std::min<std::int64_t>(next.ps / 1000, 3'600'000'000'000));
  do {
    for (const auto& process : threads_.processes())
      for (const Thread& thread : process->threads) {
        if (thread.state != ThreadState::running) continue;
        const ThreadSlot& slot = process->slot(thread.index);
        if (slot.turn == ThreadSlot::kKernel || slot.mmio_produced != slot.mmio_consumed) return false;
      }
  } while (Clock::now() - idle_since < kSpinTime);

  std::vector<pollfd> watched;
  for (const auto& process : threads_.processes()) {
    if (!process->alive) continue;
    sleeps_word(*process) = 1;
    watched.push_back({process->socket(), POLLIN, 0});
  }
  watched.push_back({handler_->descriptor(), POLLIN, 0});
  if (outside != nullptr) outside->watch(watched);
  ::poll(watched.data(), nfds_t(watched.size()), kNapMs);
  for (const auto& process : threads_.processes()) {
    if (!process->alive) continue;
    sleeps_word(*process) = 0;
    process->drain_kicks();
    if (process->has_exited()) handler_->process_died(*process);
  }
  handler_->collect_all(now());
  look_around();
  return Clock::now() >= due;
}

}  // namespace rnicsim::sim
