// SPDX-License-Identifier: Apache-2.0
// Calls about time and threads, which decide the order of turns.

#include <algorithm>
#include <cerrno>

#include "sim/attached/time/cpu_time.h"
#include "sim/attached/time/time_keeper.h"

namespace rnicsim::sim {
namespace {

using abi::Call;
using abi::ThreadSlot;

std::optional<Duration> deadline(std::uint64_t ps) {
  return ps == abi::kForever ? std::nullopt : std::optional(duration(ps));
}

}  // namespace

bool TimeKeeper::execute(Thread& thread) {
  Process& process = *thread.process;
  ThreadSlot& slot = slot_of(thread);
  slot.error = 0;
  deliver_posted();  // writes posted before the call take effect first
  switch (slot.call) {
    case Call::sync: return true;  // simulated time has reached the thread's clock
    case Call::look: return memory_waits_.look(thread);
    case Call::spin: return memory_waits_.spin(thread);
    case Call::sleep:
      if (duration(slot.argument[0]) <= now()) return true;
      threads_.wait(thread, ThreadState::sleeping, deadline(slot.argument[0]));
      return false;
    case Call::wait_descriptors: return descriptor_waits_.wait(thread, slot, deadline(slot.argument[0]));
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
