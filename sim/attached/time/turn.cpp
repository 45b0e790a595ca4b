// SPDX-License-Identifier: Apache-2.0
// A turn: how long a thread may run, and what is collected when the turn ends.

#include <fmt/format.h>

#include <algorithm>

#include "sim/attached/time/long_turn.h"
#include "sim/attached/time/time_keeper.h"

namespace rnicsim::sim {
namespace {

using abi::ThreadSlot;
// Even short turns can follow each other for long while simulated time stands still.
constexpr std::uint64_t kTurnsBetweenLooks = 4096;
}  // namespace

// Relative to simulated time: a thread that is ahead when it gets the turn does not get further ahead.
Duration TimeKeeper::clock_limit(const Thread& thread) const {
  constexpr std::int64_t kPart = 16;
  if (slot_of(thread).only_clocks == 0) return now();
  return now() + std::min(Duration{(now() - thread.idle_since).ps / kPart}, params_.most_clock_slack);
}

// Until this time nothing changes that the thread can see: a look that ends before it, or up to `detect` later, finds
// memory as it is now.
Duration TimeKeeper::quiet_until(const Thread& thread) const {
  if (params_.each_look || threads_.in_real_kernel() != 0) return now();
  constexpr int kMostAsked = 16;  // threads; the time of the last one bounds the others
  const Process& process = *thread.process;
  const std::uint32_t host = process.identity().host;
  Duration quiet = now() + params_.most_unseen;
  if (threads_.is_watched(thread)) return now();
  if (threads_.is_watched_by_other_processes(thread)) quiet = now() + params_.least_unseen;
  int asked = 0;
  for (const Thread* other : threads_.timed()) {
    if (other == &thread) continue;
    const bool near = other->process == &process || ++asked == kMostAsked;
    if (!near && other->process->identity().host == host)
      quiet = std::min(quiet, std::max(*other->at, now() + params_.least_unseen));
    else
      quiet = std::min(quiet, near ? *other->at : handler_->quiet_until_doorbell(host, *other->at));
    if (near) break;
  }
  if (const auto end = timers_.next_end(host)) quiet = std::min(quiet, *end);
  const Duration next = std::min(Agenda::current()->next_alarm(), Agenda::next_in_kernel());
  // A waiting thread may continue at the next event or act of another thread. Most threads of the same process do so
  // `wakeup` later. A store of a thread of another process may be seen least_unseen late.
  const auto other = std::ranges::find_if(threads_.timed(), [&](const Thread* timed) { return timed != &thread; });
  const Duration acts = other != threads_.timed().end() ? std::min(next, *(*other)->at) : next;
  const Duration wakeup = threads_.has_prompt_neighbours(thread) ? Duration{} : threads_.times_of(process).wakeup;
  if (acts < quiet - wakeup) quiet = acts + wakeup;
  quiet = std::min(quiet, std::max(acts, now() + params_.least_unseen));
  return std::max(now(), std::min(quiet, handler_->quiet_until(host, std::max(now(), next))));
}

void TimeKeeper::grant(Thread& thread) {
  Process& process = *thread.process;
  process.address_space().turn_begins();
  ThreadSlot& slot = slot_of(thread);
  if (thread.seen_memory_writes != process.memory_writes) thread.idle_since = clock_of(thread);
  if (thread.seen_memory_writes != process.memory_writes || thread.seen_stores != process.stores) ++thread.changes;
  slot.changes = thread.changes;
  thread.seen_memory_writes = process.memory_writes;
  thread.seen_stores = process.stores;
  const Duration detect = threads_.times_of(process).detect;
  const Duration looks_until = params_.simulated ? quiet_until(thread) + detect : Duration{};
  Duration limit = std::max(clock_limit(thread), looks_until);
  if (const auto end = Timers::next_end(process)) limit = std::min(limit, std::max(*end, now()));
  slot.run_until = std::uint64_t(limit.ps);
  slot.looks_until = std::uint64_t(looks_until.ps);
  slot.ring_visible = process.ring_written ? std::uint64_t((*process.ring_written + detect).ps) : 0;
  slot.act_until = std::uint64_t((now() + params_.act_slack).ps);
  slot.acted = 0;
  // The loop continues with a look, at which the thread takes its signals.
  if (thread.loop) {
    slot.signal_count = 0;
    if (!thread.due_signals.empty()) slot.looks_until = 0;
  } else {
    Signals::hand_over_signals(thread);
  }
  if (!thread.pending_signals.empty())
    signal_watches_.show(process, process.pending_signals.set() | thread.pending_signals.set());
  threads_.set_state(thread, ThreadState::running);
  threads_.set_running(&thread);
  release(thread);
}

void TimeKeeper::release(Thread& thread) { programs_.give_turn(thread); }

// False: the process died, or the thread is blocked in the real kernel; other threads continue.
bool TimeKeeper::await_return(Thread& thread) {
  LongTurn turn;
  if (++turns_ % kTurnsBetweenLooks == 0) look_around();
  const auto meanwhile = [&](std::chrono::microseconds waited) {
    const bool wrote = relay_output();
    look_around();
    if (patient_) return wrote;
    const auto look = [&] {
      return LongTurn::Facts{programs_.processor_time(*thread.process), programs_.is_stopped(thread)};
    };
    if (const auto why = turn.complaint(waited, look)) report_stuck(thread, *why);
    return wrote;
  };
  TurnEnd end;
  do end = programs_.await_turn_end(thread, meanwhile);
  while (end == TurnEnd::blocked && patient_);
  threads_.set_running(nullptr);
  switch (end) {
    case TurnEnd::given_back: return true;
    case TurnEnd::died: handler_->process_died(*thread.process); return false;
    case TurnEnd::blocked:
      disturbed(fmt::format("{}: blocked in the real kernel, {}", thread.process->label(), programs_.activity(thread)));
      threads_.schedule(thread, ThreadState::in_real_kernel, std::nullopt, false);
      return false;
  }
  return false;
}

void TimeKeeper::report_stuck(const Thread& thread, const std::string& why) const {
  fmt::print(stderr, "rnicsim: simulated time stands at {} because {} {}\n{}", to_string(now()),
             thread.process->label(), why, describe());
}

// Collects a thread that returned from the real kernel. True: there was one.
bool TimeKeeper::poll_real_kernel() {
  for (const auto& process : threads_.processes()) {
    for (Thread& thread : process->threads) {
      if (thread.state != ThreadState::in_real_kernel) continue;
      // Read before the slot: the thread's last turn may have ended the process.
      const bool ended = programs_.has_ended(*process);
      if (slot_of(thread).turn != ThreadSlot::kKernel) {
        if (!ended) continue;
        handler_->process_died(*process);
        return true;
      }
      collect(thread);
      threads_.schedule(thread, ThreadState::due, std::max(clock_of(thread), now()),
                        slot_of(thread).call != abi::Call::sync);
      return true;
    }
  }
  relay_output();
  return false;
}

// Takes over the results of a turn, at the thread's own time.
void TimeKeeper::collect(Thread& thread) {
  ThreadSlot& slot = slot_of(thread);
  // A thread's clock never goes back.
  slot.now = std::uint64_t(std::max(clock_of(thread), now()).ps);
  if (slot.acted != 0) thread.idle_since = clock_of(thread);
  if (!thread.pending_signals.empty()) signal_watches_.show(*thread.process, thread.process->pending_signals.set());
  memory_waits_.show_stores(thread);
  take_milestones(thread);
  take_posted(thread);
  handler_->collect_all(clock_of(thread));
  relay_output();
  threads_.descriptors_changed();
}

void TimeKeeper::take_posted(Thread& thread) {
  ThreadSlot& slot = slot_of(thread);
  const auto base = std::uint64_t(now().ps);
  const std::uint32_t produced = slot.mmio_produced.load(std::memory_order_acquire);
  std::uint32_t consumed = slot.mmio_consumed.load(std::memory_order_relaxed);
  if (produced - consumed > ThreadSlot::kMmioEntries) consumed = produced;  // the program overwrote the counters
  for (; consumed != produced; ++consumed) {
    const abi::MmioWrite& entry = slot.mmio[consumed % ThreadSlot::kMmioEntries];
    const std::uint64_t time = std::clamp(entry.time, base, std::max(base, slot.now));
    posted_.push({std::int64_t(time)}, {thread.process, entry});
  }
  slot.mmio_consumed.store(consumed, std::memory_order_release);
}

void TimeKeeper::take_milestones(Thread& thread) {
  ThreadSlot& slot = slot_of(thread);
  const std::uint32_t produced = slot.milestones_produced.load(std::memory_order_acquire);
  std::uint32_t consumed = slot.milestones_consumed.load(std::memory_order_relaxed);
  if (produced == consumed) return;
  if (produced - consumed > ThreadSlot::kMilestoneEntries) consumed = produced;  // the program overwrote the counters
  for (; consumed != produced; ++consumed) {
    abi::Milestone milestone = slot.milestones[consumed % ThreadSlot::kMilestoneEntries];
    milestone.time = std::min(milestone.time, slot.now);
    handler_->milestone(*thread.process, milestone);
  }
  slot.milestones_consumed.store(consumed, std::memory_order_release);
}

}  // namespace rnicsim::sim
