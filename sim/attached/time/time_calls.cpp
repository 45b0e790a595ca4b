// SPDX-License-Identifier: Apache-2.0
// Calls about time and threads, which decide the order of turns.

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "model/host/log.h"
#include "sim/attached/time/cpu_time.h"
#include "sim/attached/time/time_keeper.h"

namespace rnicsim::sim {
namespace {

using abi::Call;
using abi::ThreadSlot;

std::optional<Duration> deadline(std::uint64_t ps) {
  return ps == abi::kForever ? std::nullopt : std::optional(duration(ps));
}

// Logged once for each process.
void tell_of_refused_wait(TimeKeeper& keeper, const Process& process) {
  std::string why = fmt::format(
      "h{}: {} cannot wait for descriptors: the simulator has no free file descriptor; raise the hard limit (ulimit "
      "-Hn)",
      process.identity().host, process.label());
  if (!keeper.disturbances().contains(why)) host::log_error(why);
  keeper.disturbed(std::move(why));
}

}  // namespace

bool TimeKeeper::execute(Thread& thread) {
  Process& process = *thread.process;
  ThreadSlot& slot = slot_of(thread);
  slot.error = 0;
  deliver_posted();  // writes posted before the call take effect first
  switch (slot.call) {
    case Call::sync: return true;  // simulated time has reached the thread's clock
    case Call::look: return look(thread);
    case Call::spin: return spin(thread);
    case Call::sleep:
      if (duration(slot.argument[0]) <= now()) return true;
      threads_.wait(thread, ThreadState::sleeping, deadline(slot.argument[0]));
      return false;
    case Call::wait_descriptors: return wait_descriptors(thread, slot);
    case Call::wait_address: address_waits_.wait(thread, slot, deadline(slot.argument[1])); return false;
    case Call::wake_address:
      slot.value = address_waits_.wake(process, {slot.argument[0], slot.argument[1], slot.argument[2] != 0,
                                                 clock_of(thread), slot.argument[3] != 0});
      return true;
    case Call::set_timer: return timers_.set(process, slot);
    case Call::get_timer: return Timers::get(process, slot);
    case Call::new_timer: return timers_.make(thread, slot);
    case Call::delete_timer:
      return answer(slot, process.timers.erase(std::uint32_t(slot.argument[0])) != 0 ? 0 : EINVAL);
    case Call::await_signal: return signals_.await_signal(thread, slot, deadline(slot.argument[1]));
    case Call::take_signals: return signals_.take_signals(thread, slot);
    case Call::watch_signals: return signal_watches_.watch(thread, slot);
    case Call::unwatch_signals:
      return answer(slot, process.signal_watches.erase(std::uint32_t(slot.argument[0])) != 0 ? 0 : EINVAL);
    case Call::read_signals: return signals_.read_signals(thread, slot);
    case Call::find_event: return find_event(threads_, thread, slot);
    case Call::thread_new: return new_thread(thread, slot);
    case Call::thread_start: {
      const std::uint64_t index = slot.argument[0];
      if (index >= process.threads.size() || process.threads[index].state != ThreadState::starting)
        return answer(slot, EINVAL);
      start_thread(process, std::uint32_t(index), now());
      return true;
    }
    case Call::thread_exit: return exit_thread(thread, slot);
    default: return execute_by_handler(thread);
  }
}

bool TimeKeeper::execute_by_handler(Thread& thread) {
  const Call call = slot_of(thread).call;
  const bool answered = handler_->execute(thread);
  // A call that only asks for something that is not there, in a loop, is a kind of wait. (After a call without an
  // answer the thread may be gone.)
  const bool only_asked = call == Call::wait_child || call == Call::find_process || call == Call::net_connect ||
                          call == Call::net_error || call == Call::sem_control || call == Call::msg_control ||
                          (call >= Call::sem_get && !answered);
  if (!only_asked && (!answered || slot_of(thread).error == 0)) threads_.progressed();
  return answered;
}

// --- Waiting for memory.

// Simulated time has reached the thread's look. A look counts as a wait until something new is seen.
bool TimeKeeper::look(Thread& thread) {
  const bool looks = slot_of(thread).argument[0] == 0;
  if (looks) threads_.note_vain_wait(thread, ThreadState::polling);
  return true;
}

bool TimeKeeper::spin(Thread& thread) {
  const Process& process = *thread.process;
  // The proof holds for the memory as it was during the thread's turn.
  const bool written = process.memory_writes != thread.seen_memory_writes;
  const bool stored = process.stores != thread.seen_stores;
  if (slot_of(thread).argument[1] != 0) return park(thread);
  if (stored && !written) thread.looked_again = true;
  slot_of(thread).value = stored && !written ? 1 : 0;
  if (written || stored) return true;
  threads_.wait(thread, ThreadState::spinning, std::nullopt);
  return false;
}

// For a loop of looks. EAGAIN: memory changed during the proved round, and the thread must look itself.
bool TimeKeeper::park(Thread& thread) {
  const Process& process = *thread.process;
  ThreadSlot& slot = slot_of(thread);
  thread.loop = ParkedLoop::from(slot);
  slot.value = slot.argument[2] = 0;
  if (!thread.loop) return answer(slot, EINVAL);
  const bool written = process.memory_writes != thread.seen_memory_writes;
  if (written || process.stores != thread.seen_stores || slot.argument[4] != thread.changes) {
    thread.loop.reset();
    return answer(slot, EAGAIN);
  }
  threads_.wait(thread, ThreadState::polling, std::nullopt);
  return false;
}

bool TimeKeeper::wait_descriptors(Thread& thread, ThreadSlot& slot) {
  thread.watched.clear();
  if (const std::uint64_t sent = slot.argument[1]; sent != 0) {
    auto descriptors = thread.process->receive_descriptors(thread.index);
    // Without all copies the wait might never end. The kernel gives out the lowest free number: when the last copy has
    // a number of watched_end or more, all lower numbers are in use.
    const bool refused = descriptors.size() != sent || descriptors.back().get() >= params_.watched_end;
    if (refused) {
      tell_of_refused_wait(*this, *thread.process);
      return answer(slot, ENOMEM);
    }
    std::uint32_t events[abi::kMaxDescriptors];
    std::memcpy(events, slot.input, sizeof events);
    for (std::size_t i = 0; i < descriptors.size(); ++i)
      thread.watched.push_back({std::move(descriptors[i]), short(events[i])});
  }
  if (is_ready(thread)) {
    thread.watched.clear();
    return true;
  }
  threads_.wait(thread, ThreadState::awaiting_descriptors, deadline(slot.argument[0]));
  return false;
}

// --- Threads.

bool TimeKeeper::new_thread(const Thread& maker, ThreadSlot& slot) {
  Process& process = *maker.process;
  const auto free = std::ranges::find(process.threads, ThreadState::free, &Thread::state);
  const auto index = std::uint32_t(free - process.threads.begin());
  if (index >= abi::kMaxThreads) return answer(slot, EAGAIN);
  Thread& thread = threads_.slot_for(process, index);
  // Reset all state of the slot's last thread.
  thread = Thread{.process = &process, .index = index, .state = ThreadState::starting, .affinity = maker.affinity};
  process.slot(index).pending = process.pending_signals.set();
  process.slot(index).turn = ThreadSlot::kKernel;
  process.slot(index).began = ThreadSlot::kNoThread;
  process.slot(index).virtual_tid = handler_->new_tid(process);
  slot.value = index;
  return true;
}

// Ends the calling thread, or a thread that was announced and could not be created.
bool TimeKeeper::exit_thread(Thread& thread, ThreadSlot& slot) {
  const std::uint64_t index = slot.argument[0];
  if (index == 0 || index == thread.index) {
    const bool leaves_mutexes = slot.argument[1] != 0;
    if (params_.simulated) programs_.await_thread_end(thread);
    end_thread(thread);
    if (leaves_mutexes) address_waits_.wake_all(*thread.process);
    return false;
  }
  if (index >= thread.process->threads.size()) return answer(slot, EINVAL);
  end_thread(thread.process->threads[index]);
  return true;
}

void TimeKeeper::end_thread(Thread& thread) {
  if (thread.state != ThreadState::free) end_cpu_time(thread);
  threads_.schedule(thread, ThreadState::free, std::nullopt, false);
}

}  // namespace rnicsim::sim
