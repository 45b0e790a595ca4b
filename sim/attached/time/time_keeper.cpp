// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/time/time_keeper.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "model/host/log.h"
#include "sim/attached/time/cpu_time.h"

namespace rnicsim::sim {
namespace {

using abi::ThreadSlot;

// Locks are in real memory and change hands within a turn: waiters must be known before another thread runs.
bool at_once(abi::Call call) { return call == abi::Call::wait_address || call == abi::Call::wake_address; }

// The program may have written any bytes there.
std::string reason_of(const Thread& thread) {
  const char* text = slot_of(thread).reason;
  std::string reason(text, strnlen(text, sizeof ThreadSlot::reason));
  std::erase_if(reason, [](char letter) { return letter < ' ' || letter > '~'; });
  return reason;
}

bool sees_late(const ThreadSlot& slot) {
  return slot.call == abi::Call::look || (slot.call == abi::Call::spin && slot.argument[1] != 0);
}

}  // namespace

TimeKeeper::TimeKeeper(sc_core::sc_module_name name, const TimeKeeperParams& params, Programs& programs,
                       OutputRelay& output)
    : sc_module(name), params_(params), programs_(programs), output_(output) {
  descriptor_waits_.on_refusal = [this](const Process& process) { wait_refused(process); };
}

void TimeKeeper::set_handler(CallHandler& handler) {
  handler_ = &handler;
  stops_.on_change = [this](Process& process, int signal) { handler_->process_stopped(process, signal); };
  signal_watches_.lacks_descriptors = timers_.lacks_descriptors = [this](const Process& process, const char* what) {
    return handler_->lacks_descriptors(process, what);
  };
}

// Logged once for each process.
void TimeKeeper::wait_refused(const Process& process) {
  std::string why = fmt::format(
      "h{}: {} cannot wait for descriptors: the simulator has no free file descriptor; raise the hard limit (ulimit "
      "-Hn)",
      process.identity().host, process.label());
  if (!disturbances_.contains(why)) host::log_error(why);
  disturbed(std::move(why));
}

Process& TimeKeeper::add(std::unique_ptr<Process> process, Duration start) {
  Process& added = threads_.add(std::move(process));
  threads_.progressed();
  start_thread(added, 0, start);
  threads_.show_shared_waits(added.identity().host);
  return added;
}

void TimeKeeper::start_thread(Process& process, std::uint32_t index, Duration start) {
  Thread& thread = threads_.slot_for(process, index);
  ThreadSlot& slot = process.slot(index);
  slot.turn = ThreadSlot::kKernel;
  slot.asked = 0;
  slot.reason[0] = 0;
  slot.now = std::uint64_t(start.ps);
  thread.idle_since = start;
  start_cpu_time(thread);
  threads_.schedule(thread, ThreadState::due, start, false);
}

void TimeKeeper::forget_threads(Process& process) {
  for (Thread& thread : process.threads) end_thread(thread);
}

void TimeKeeper::replace_image(Process& process) {
  forget_threads(process);
  keep_open_events(process);
}

void TimeKeeper::end_process(Process& process) {
  threads_.progressed();
  process.alive = false;
  process.timers.clear();
  process.signal_watches.clear();
  process.pending_signals = {};
  forget_threads(process);
  address_waits_.wake_sharers(process.identity().host);
}

// --- The turn.

void TimeKeeper::step() { params_.simulated ? step_simulated() : step_real(); }

void TimeKeeper::step_simulated() {
  while (!ended_) {
    threads_.run_due_actions();
    if (threads_.in_real_kernel() != 0) poll_real_kernel();
    if (threads_.take_descriptors_changed()) descriptor_waits_.poll();
    Thread* thread = threads_.next_due();
    if (thread == nullptr) break;
    thread->process->stopped ? threads_.hold(*thread) : run(*thread);
  }
  look_when_quiet();
  threads_.arm();
}

bool TimeKeeper::look_around() {
  relay_output();
  if (while_waiting) while_waiting();
  return !ended_;
}

bool TimeKeeper::outlast_silence() {
  while (threads_.timed().empty() && !threads_.has_actions() && !ended_) {
    if (poll_real_kernel() || bury_the_dead()) continue;
    if (threads_.in_real_kernel() != 0) ::usleep(200);
    if (on_standstill && !on_standstill()) return false;
  }
  threads_.arm();
  return true;
}

// Handles one process that was killed while all its threads waited. True: there was one.
bool TimeKeeper::bury_the_dead() {
  for (const auto& process : threads_.processes()) {
    // A thread with a later turn reports the death; a process may also have exited at a later simulated time.
    const bool gets_turn = std::ranges::any_of(process->threads, [](const Thread& thread) { return bool(thread.at); });
    if (!process->alive || gets_turn || !programs_.has_ended(*process)) continue;
    if (params_.simulated) disturbed(process->label() + ": was killed while it waited");
    handler_->process_died(*process);
    return true;
  }
  return false;
}

void TimeKeeper::find_the_dead() {
  if (threads_.running() != nullptr) return;
  while (bury_the_dead()) continue;
}

// Simulated time that must be reached before the thread continues: other threads may come first. A look sees memory as
// it was `detect` before the look's end.
Duration TimeKeeper::world_wanted(const Thread& thread, bool pending) const {
  const bool looks = pending && sees_late(slot_of(thread));
  return clock_of(thread) - (looks ? threads_.times_of(*thread.process).detect : Duration{});
}

void TimeKeeper::run(Thread& thread) {
  if (!thread.call_pending) {
    thread.looked_again = thread.state == ThreadState::spinning;
    if (thread.looked_again) slot_of(thread).value = 1;
    note_end_of_wait(thread);
  }
  // The wait ended by its deadline.
  if (thread.state == ThreadState::awaiting_descriptors || thread.state == ThreadState::awaiting_address)
    slot_of(thread).error = ETIMEDOUT;
  if (thread.state == ThreadState::awaiting_signal || thread.state == ThreadState::awaiting_ipc)
    slot_of(thread).error = EAGAIN;
  bool pending = thread.call_pending;
  const Duration due = *thread.at;
  threads_.unschedule(thread);
  if (thread.loop)
    memory_waits_.continue_loop(thread);
  else
    slot_of(thread).now = std::uint64_t(std::max(clock_of(thread), due).ps);
  take_processor(thread);
  for (;;) {
    if (pending && !execute(thread)) return;
    if (!thread.process->alive || thread.state == ThreadState::free) return;
    if (thread.process->stopped)
      return threads_.schedule(thread, ThreadState::due, std::max(clock_of(thread), now()), false);
    if (!thread.loop && world_wanted(thread, pending) > now() && !(pending && at_once(slot_of(thread).call)))
      return threads_.schedule(thread, ThreadState::due, clock_of(thread), false);
    grant(thread);
    thread.loop.reset();
    if (!await_return(thread)) return;
    collect(thread);
    const abi::Call call = slot_of(thread).call;
    pending = call != abi::Call::sync;
    const Duration wanted = world_wanted(thread, pending);
    if (wanted > now() && !at_once(call)) return threads_.schedule(thread, ThreadState::due, wanted, pending);
  }
}

void TimeKeeper::deliver_posted() {
  PostedWrite posted;
  while (posted_.pop_due(posted)) {
    if (!posted.process->alive) continue;
    threads_.progressed();
    handler_->mmio_write(*posted.process, posted.write);
  }
}

// --- Descriptors and signals.

bool TimeKeeper::all_wait_for_descriptors() const {
  return std::ranges::all_of(threads_.processes(), [&](const auto& process) {
    return !process->alive || std::ranges::all_of(process->threads, [&](const Thread& thread) {
      if (thread.at) return threads_.waits_in_vain(thread) && thread.last_wait == ThreadState::awaiting_descriptors;
      return thread.state == ThreadState::free || thread.state == ThreadState::awaiting_child ||
             thread.state == ThreadState::awaiting_signal || thread.state == ThreadState::awaiting_descriptors;
    });
  });
}

bool TimeKeeper::hear_from_outside() {
  if (threads_.running() != nullptr || !params_.simulated) return false;
  bool heard = false;
  for (const auto& process : threads_.processes()) {
    if (!process->alive) continue;
    for (Thread& thread : process->threads)
      if (signal_watches_.hears_from_outside(thread)) {
        heard = true;
        disturbed(process->label() + ": a signal came from outside the simulation");
      }
  }
  if (heard) descriptor_waits_.poll();
  return heard;
}

// --- Progress.

// A thread whose wait was ended by an event is `due`; only waits that ended by their deadline count.
void TimeKeeper::note_end_of_wait(Thread& thread) {
  if (thread.state != ThreadState::due) threads_.note_vain_wait(thread, thread.state);
}

void TimeKeeper::look_when_quiet() {
  if (!params_.look_when_quiet || !on_quiet) return;
  if (now() - std::max(threads_.progressed_at(), quiet_look_) < *params_.look_when_quiet) return;
  quiet_look_ = now();
  on_quiet();
}

bool TimeKeeper::all_wait_in_vain() const {
  const auto waits = [this](const Thread& thread) {
    if (thread.state == ThreadState::free || threads_.waits_in_vain(thread)) return true;
    return !thread.at && thread.state != ThreadState::running && thread.state != ThreadState::starting;
  };
  return std::ranges::all_of(threads_.processes(), [&](const auto& process) {
    if (!process->alive) return true;
    return std::ranges::all_of(process->timers,
                               [this](const auto& entry) { return threads_.rings_in_vain(*entry.second); }) &&
           std::ranges::all_of(process->threads, waits);
  });
}

std::string TimeKeeper::awaited() const {
  const Thread* thread = threads_.running() != nullptr ? threads_.running()
                         : threads_.timed().empty()    ? nullptr
                                                       : *threads_.timed().begin();
  if (thread == nullptr) return "no thread is due";
  return fmt::format("h{} {}: {}", thread->process->identity().host, thread->process->label(),
                     to_string(thread->state));
}

std::string TimeKeeper::describe() const {
  std::string text;
  for (const auto& process : threads_.processes()) {
    if (!process->alive) continue;
    for (const Thread& thread : process->threads) {
      if (thread.state == ThreadState::free) continue;
      text += fmt::format("  h{} {} thread {}: {}", process->identity().host, process->label(), thread.index,
                          to_string(thread.state));
      if (thread.at) text += fmt::format(" until {}", to_string(*thread.at));
      if (thread.state == ThreadState::due && threads_.waits_in_vain(thread))
        text += fmt::format(", between two turns of {}", to_string(thread.last_wait));
      const bool has_reason = thread.state == ThreadState::awaiting_address;
      if (const std::string reason = has_reason ? reason_of(thread) : ""; !reason.empty())
        text += fmt::format(" ({})", reason);
      const auto* descriptors = std::get_if<WaitForDescriptors>(&thread.wait);
      if (descriptors != nullptr && !descriptors->watched.empty())
        text += fmt::format(", {} of them", descriptors->watched.size());
      if (process->stopped) text += ", stopped until SIGCONT";
      text += '\n';
    }
  }
  return text;
}

}  // namespace rnicsim::sim
