// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/time/time_keeper.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <tuple>

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

bool TimeKeeper::Earlier::operator()(const Thread* a, const Thread* b) const {
  return std::tuple(*a->at, rank_of(*a)) < std::tuple(*b->at, rank_of(*b));
}

TimeKeeper::TimeKeeper(sc_core::sc_module_name name, const TimeKeeperParams& params, Programs& programs,
                       OutputRelay& output)
    : sc_module(name), params_(params), programs_(programs), output_(output) {}

// --- Scheduling.

void TimeKeeper::unschedule(Thread& thread) {
  if (thread.at) timed_.erase(&thread);
  thread.at.reset();
  thread.watched.clear();
  thread.awaited_pipe = nullptr;
  if (std::exchange(thread.shared_word, std::nullopt)) show_shared_waits(thread.process->identity().host);
}

// True: the thread waits for memory that other threads may store to.
bool TimeKeeper::watches(ThreadState state) { return state == ThreadState::spinning || state == ThreadState::polling; }

// True: the thread runs as soon as its event happens, without HostTimes::wakeup.
bool TimeKeeper::goes_on_at_once(ThreadState state) {
  switch (state) {
    case ThreadState::free:
    case ThreadState::starting:
    case ThreadState::due:
    case ThreadState::running:
    case ThreadState::polling:
    case ThreadState::spinning:
    case ThreadState::sleeping:
    case ThreadState::awaiting_descriptors:
    case ThreadState::awaiting_address: return false;
    default: return true;
  }
}

void TimeKeeper::set_state(Thread& thread, ThreadState state) {
  in_real_kernel_ += std::size_t(state == ThreadState::in_real_kernel);
  in_real_kernel_ -= std::size_t(thread.state == ThreadState::in_real_kernel);
  std::size_t& prompt = prompt_[thread.process];
  prompt += std::size_t(goes_on_at_once(state));
  prompt -= std::size_t(goes_on_at_once(thread.state));
  for (std::size_t* watching : {&watching_[thread.process], &watching_of_host_[thread.process->identity().host]}) {
    *watching += std::size_t(watches(state));
    *watching -= std::size_t(watches(thread.state));
  }
  thread.state = state;
}

void TimeKeeper::schedule(Thread& thread, ThreadState state, std::optional<Duration> at, bool call_pending) {
  unschedule(thread);
  set_state(thread, state);
  if (leaves_processor(state)) leave_processor(thread);
  thread.held = false;
  thread.call_pending = call_pending;
  thread.at = at;
  if (!at) return;
  timed_.insert(&thread);
  arm();
}

void TimeKeeper::arm() {
  if (running_ != nullptr || timed_.empty()) return;
  step_.arm_by((*timed_.begin())->at.value());
}

void TimeKeeper::at(Duration when, std::function<void()> action) {
  actions_.push(std::max(when, now()), std::move(action));
}

void TimeKeeper::resume(Thread& thread, Duration at, int error) {
  slot_of(thread).error = error;
  schedule(thread, ThreadState::due, std::max(at, now()), false);
}

void TimeKeeper::wait(Thread& thread, ThreadState state, std::optional<Duration> until) {
  // The watched descriptors were set for this wait.
  auto watched = std::move(thread.watched);
  schedule(thread, state, until, false);
  thread.watched = std::move(watched);
  // A signal that came after the call and before its execution must end the wait.
  if (!thread.due_signals.empty()) end_wait_for_signal(thread);
}

Process& TimeKeeper::add(std::unique_ptr<Process> process, Duration start) {
  Process& added = *processes_.emplace_back(std::move(process));
  progressed();
  start_thread(added, 0, start);
  show_shared_waits(added.identity().host);
  return added;
}

Thread& TimeKeeper::slot_for(Process& process, std::uint32_t index) {
  while (process.threads.size() <= index) {
    Thread& thread = process.threads.emplace_back();
    thread.process = &process;
    thread.index = std::uint32_t(process.threads.size() - 1);
  }
  return process.threads[index];
}

void TimeKeeper::start_thread(Process& process, std::uint32_t index, Duration start) {
  Thread& thread = slot_for(process, index);
  ThreadSlot& slot = process.slot(index);
  slot.turn = ThreadSlot::kKernel;
  slot.asked = 0;
  slot.reason[0] = 0;
  slot.now = std::uint64_t(start.ps);
  thread.idle_since = start;
  start_cpu_time(thread);
  schedule(thread, ThreadState::due, start, false);
}

void TimeKeeper::forget_threads(Process& process) {
  for (Thread& thread : process.threads) end_thread(thread);
}

void TimeKeeper::end_process(Process& process) {
  progressed();
  process.alive = false;
  process.timers.clear();
  process.signal_watches.clear();
  process.pending_signals = {};
  forget_threads(process);
  wake_sharers(process.identity().host);
}

// --- The turn.

void TimeKeeper::step() { params_.simulated ? step_simulated() : step_real(); }

void TimeKeeper::run_due_actions() {
  std::function<void()> action;
  while (actions_.pop_due(action)) action();
}

void TimeKeeper::step_simulated() {
  while (!ended_) {
    run_due_actions();
    if (in_real_kernel_ != 0) poll_real_kernel();
    if (descriptors_changed_) poll_descriptors();
    Thread* thread = next_due();
    if (thread == nullptr) break;
    thread->process->stopped ? hold(*thread) : run(*thread);
  }
  look_when_quiet();
  arm();
}

bool TimeKeeper::look_around() {
  relay_output();
  if (while_waiting) while_waiting();
  return !ended_;
}

bool TimeKeeper::outlast_silence() {
  while (timed_.empty() && actions_.empty() && !ended_) {
    if (poll_real_kernel() || bury_the_dead()) continue;
    if (in_real_kernel_ != 0) ::usleep(200);
    if (on_standstill && !on_standstill()) return false;
  }
  arm();
  return true;
}

// Handles one process that was killed while all its threads waited. True: there was one.
bool TimeKeeper::bury_the_dead() {
  for (const auto& process : processes_) {
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
  if (running_ != nullptr) return;
  while (bury_the_dead()) continue;
}

Thread* TimeKeeper::next_due() {
  if (timed_.empty()) return nullptr;
  Thread* first = *timed_.begin();
  return *first->at <= now() ? first : nullptr;
}

// Simulated time that must be reached before the thread continues: other threads may come first. A look sees memory as
// it was `detect` before the look's end.
Duration TimeKeeper::world_wanted(const Thread& thread, bool pending) const {
  const bool looks = pending && sees_late(slot_of(thread));
  return clock_of(thread) - (looks ? times_of(*thread.process).detect : Duration{});
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
  unschedule(thread);
  if (thread.loop)
    continue_loop(thread);
  else
    slot_of(thread).now = std::uint64_t(std::max(clock_of(thread), due).ps);
  take_processor(thread);
  for (;;) {
    if (pending && !execute(thread)) return;
    if (!thread.process->alive || thread.state == ThreadState::free) return;
    if (thread.process->stopped) return schedule(thread, ThreadState::due, std::max(clock_of(thread), now()), false);
    if (!thread.loop && world_wanted(thread, pending) > now() && !(pending && at_once(slot_of(thread).call)))
      return schedule(thread, ThreadState::due, clock_of(thread), false);
    grant(thread);
    thread.loop.reset();
    if (!await_return(thread)) return;
    collect(thread);
    const abi::Call call = slot_of(thread).call;
    pending = call != abi::Call::sync;
    const Duration wanted = world_wanted(thread, pending);
    if (wanted > now() && !at_once(call)) return schedule(thread, ThreadState::due, wanted, pending);
  }
}

void TimeKeeper::deliver_posted() {
  PostedWrite posted;
  while (posted_.pop_due(posted)) {
    if (!posted.process->alive) continue;
    progressed();
    handler_->mmio_write(*posted.process, posted.write);
  }
}

// --- Waking.

void TimeKeeper::memory_written(Process& process, std::uint64_t address, std::uint64_t bytes) {
  ++process.memory_writes;
  progressed();
  const bool ring = address >= abi::kMemoryAddress && address - abi::kMemoryAddress < abi::kMemoryBytes;
  if (ring) process.ring_written = now();
  const Duration visible = now() + times_of(process).detect;
  for (Thread& thread : process.threads) {
    if (thread.state == ThreadState::spinning) resume(thread, visible);
    if (thread.loop && (ring || thread.loop->sees(address, bytes))) end_loop(thread, visible, false);
  }
  if (!process.address_space().shared_page(address)) return;
  for (const auto& other : processes_)
    if (other.get() != &process && other->alive && other->identity().host == process.identity().host)
      wake_spinning(*other);
}

void TimeKeeper::wake_spinning(Process& process) {
  ++process.memory_writes;
  const Duration visible = now() + times_of(process).detect;
  for (Thread& thread : process.threads) {
    if (thread.state == ThreadState::spinning) resume(thread, visible);
    if (thread.loop) end_loop(thread, visible, false);
  }
}

// Memory changed: the loop ends with its first look that ends at `visible` or later.
void TimeKeeper::end_loop(Thread& thread, Duration visible, bool only_stores) {
  if (thread.state != ThreadState::polling) return;
  thread.loop->only_stores = thread.loop->only_stores && only_stores;
  const Duration at = std::max(now(), thread.loop->first_look(visible).ends - times_of(*thread.process).detect);
  if (thread.at && *thread.at <= at) return;
  schedule(thread, ThreadState::polling, at, false);
}

// The look begins at its time in the loop, which may lie before the present time; the look's end lies after it.
void TimeKeeper::continue_loop(Thread& thread) {
  ThreadSlot& slot = slot_of(thread);
  const auto look = thread.loop->first_look(now() + times_of(*thread.process).detect);
  slot.now = std::uint64_t(look.begins.ps);
  thread.idle_since = look.begins;
  slot.argument[2] = look.index;
  slot.value = thread.loop->only_stores ? 1 : 0;
  thread.looked_again = thread.loop->only_stores;
}

void TimeKeeper::interrupted(Process& process) {
  progressed();
  wake_spinning(process);
}

void TimeKeeper::descriptors_may_be_ready() {
  descriptors_changed_ = true;
  if (running_ == nullptr) step_.arm(now());
}

void TimeKeeper::poll_descriptors() {
  descriptors_changed_ = false;
  std::vector<pollfd> watched;
  std::vector<Thread*> owner;
  for (const auto& process : processes_)
    for (Thread& thread : process->threads)
      if (thread.state == ThreadState::awaiting_descriptors)
        for (const auto& descriptor : thread.watched) {
          watched.push_back({descriptor.fd.get(), descriptor.events, 0});
          owner.push_back(&thread);
        }
  if (watched.empty() || ::poll(watched.data(), nfds_t(watched.size()), 0) <= 0) return;
  for (std::size_t i = 0; i < watched.size(); ++i)
    if (watched[i].revents != 0 && owner[i]->state == ThreadState::awaiting_descriptors) wake(*owner[i]);
}

void TimeKeeper::wake(Thread& thread) {
  resume(thread, std::max(now(), clock_of(thread)) + times_of(*thread.process).wakeup);
}

void TimeKeeper::await_pipe(Thread& thread, const Descriptor& pipe) {
  wait(thread, ThreadState::awaiting_descriptors, std::nullopt);
  thread.awaited_pipe = &pipe;
}

void TimeKeeper::pipe_written(Process& process, const Descriptor& pipe) {
  for (Thread& thread : process.threads)
    if (thread.state == ThreadState::awaiting_descriptors && thread.awaited_pipe == &pipe) wake(thread);
}

bool TimeKeeper::is_ready(const Thread& thread) {
  std::vector<pollfd> watched;
  for (const auto& descriptor : thread.watched) watched.push_back({descriptor.fd.get(), descriptor.events, 0});
  return !watched.empty() && ::poll(watched.data(), nfds_t(watched.size()), 0) > 0;
}

bool TimeKeeper::all_wait_for_descriptors() const {
  return std::ranges::all_of(processes_, [&](const auto& process) {
    return !process->alive || std::ranges::all_of(process->threads, [&](const Thread& thread) {
      if (thread.at) return waits_in_vain(thread) && thread.last_wait == ThreadState::awaiting_descriptors;
      return thread.state == ThreadState::free || thread.state == ThreadState::awaiting_child ||
             thread.state == ThreadState::awaiting_signal || thread.state == ThreadState::awaiting_descriptors;
    });
  });
}

// --- Progress.

void TimeKeeper::progressed() {
  ++progress_;
  progressed_at_ = now();
}

// A thread whose wait was ended by an event is `due`; only waits that ended by their deadline count.
void TimeKeeper::note_end_of_wait(Thread& thread) {
  if (thread.state != ThreadState::due) note_vain_wait(thread, thread.state);
}

void TimeKeeper::note_vain_wait(Thread& thread, ThreadState wait) {
  if (std::exchange(thread.seen_progress, progress_) != progress_) thread.waits_in_vain = 0;
  ++thread.waits_in_vain;
  thread.last_wait = wait;
}

bool TimeKeeper::waits_in_vain(const Thread& thread) const {
  return thread.seen_progress == progress_ && thread.waits_in_vain >= kVainEnds;
}

void TimeKeeper::look_when_quiet() {
  if (!params_.look_when_quiet || !on_quiet) return;
  if (now() - std::max(progressed_at_, quiet_look_) < *params_.look_when_quiet) return;
  quiet_look_ = now();
  on_quiet();
}

bool TimeKeeper::all_wait_in_vain() const {
  const auto waits = [this](const Thread& thread) {
    if (thread.state == ThreadState::free || waits_in_vain(thread)) return true;
    return !thread.at && thread.state != ThreadState::running && thread.state != ThreadState::starting;
  };
  return std::ranges::all_of(processes_, [&](const auto& process) {
    if (!process->alive) return true;
    return std::ranges::all_of(process->timers, [this](const auto& entry) { return rings_in_vain(*entry.second); }) &&
           std::ranges::all_of(process->threads, waits);
  });
}

std::string TimeKeeper::awaited() const {
  const Thread* thread = running_ != nullptr ? running_ : timed_.empty() ? nullptr : *timed_.begin();
  if (thread == nullptr) return "no thread is due";
  return fmt::format("h{} {}: {}", thread->process->identity().host, thread->process->label(),
                     to_string(thread->state));
}

std::string TimeKeeper::describe() const {
  std::string text;
  for (const auto& process : processes_) {
    if (!process->alive) continue;
    for (const Thread& thread : process->threads) {
      if (thread.state == ThreadState::free) continue;
      text += fmt::format("  h{} {} thread {}: {}", process->identity().host, process->label(), thread.index,
                          to_string(thread.state));
      if (thread.at) text += fmt::format(" until {}", to_string(*thread.at));
      if (thread.state == ThreadState::due && waits_in_vain(thread))
        text += fmt::format(", between two turns of {}", to_string(thread.last_wait));
      const bool has_reason = thread.state == ThreadState::awaiting_address;
      if (const std::string reason = has_reason ? reason_of(thread) : ""; !reason.empty())
        text += fmt::format(" ({})", reason);
      if (!thread.watched.empty()) text += fmt::format(", {} of them", thread.watched.size());
      if (process->stopped) text += ", stopped until SIGCONT";
      text += '\n';
    }
  }
  return text;
}

const char* to_string(ThreadState state) {
  switch (state) {
    case ThreadState::free: return "free";
    case ThreadState::starting: return "starting";
    case ThreadState::due: return "due";
    case ThreadState::running: return "running";
    case ThreadState::polling: return "polling a queue";
    case ThreadState::spinning: return "spinning on memory";
    case ThreadState::sleeping: return "sleeping";
    case ThreadState::awaiting_descriptors: return "waiting for descriptors";
    case ThreadState::awaiting_address: return "waiting for another thread";
    case ThreadState::awaiting_child: return "waiting for a child";
    case ThreadState::awaiting_signal: return "waiting for a signal";
    case ThreadState::awaiting_ipc: return "waiting for a semaphore or a message queue";
    case ThreadState::awaiting_device: return "waiting for the device";
    case ThreadState::awaiting_peer: return "connecting";
    case ThreadState::in_real_kernel: return "blocked in the real kernel";
  }
  return "?";
}

}  // namespace rnicsim::sim
