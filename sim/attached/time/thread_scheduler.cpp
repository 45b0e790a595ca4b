// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/time/thread_scheduler.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <tuple>

#include "sim/attached/time/cpu_time.h"

namespace rnicsim::sim {
namespace {

bool waits_in_shared_memory(const Wait& wait) {
  const auto* at = std::get_if<WaitForAddress>(&wait);
  return at != nullptr && at->shared_word;
}

}  // namespace

bool ThreadScheduler::Earlier::operator()(const Thread* a, const Thread* b) const {
  return std::tuple(*a->at, rank_of(*a)) < std::tuple(*b->at, rank_of(*b));
}

ThreadScheduler::ThreadScheduler(const TimeKeeperParams& params, std::function<void()> step)
    : params_(params), on_step_(std::move(step)) {}

Thread& ThreadScheduler::slot_for(Process& process, std::uint32_t index) {
  while (process.threads.size() <= index) {
    Thread& thread = process.threads.emplace_back();
    thread.process = &process;
    thread.index = std::uint32_t(process.threads.size() - 1);
  }
  return process.threads[index];
}

// --- States.

void ThreadScheduler::unschedule(Thread& thread) {
  if (thread.at) timed_.erase(&thread);
  thread.at.reset();
  if (waits_in_shared_memory(std::exchange(thread.wait, {}))) show_shared_waits(thread.process->identity().host);
}

// True: the thread waits for memory that other threads may store to.
bool ThreadScheduler::watches(ThreadState state) {
  return state == ThreadState::spinning || state == ThreadState::polling;
}

// True: the thread runs as soon as its event happens, without HostTimes::wakeup.
bool ThreadScheduler::goes_on_at_once(ThreadState state) {
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

void ThreadScheduler::set_state(Thread& thread, ThreadState state) {
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

void ThreadScheduler::schedule(Thread& thread, ThreadState state, std::optional<Duration> at, bool call_pending) {
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

void ThreadScheduler::arm() {
  if (running_ != nullptr || timed_.empty()) return;
  step_.arm_by((*timed_.begin())->at.value());
}

void ThreadScheduler::at(Duration when, std::function<void()> action) {
  actions_.push(std::max(when, now()), std::move(action));
}

void ThreadScheduler::resume(Thread& thread, Duration at, int error) {
  slot_of(thread).error = error;
  schedule(thread, ThreadState::due, std::max(at, now()), false);
}

void ThreadScheduler::wait(Thread& thread, ThreadState state, std::optional<Duration> until, Wait wait) {
  schedule(thread, state, until, false);
  thread.wait = std::move(wait);
  // A signal that came after the call and before its execution must end the wait.
  if (!thread.due_signals.empty()) end_wait_for_signal(thread);
}

void ThreadScheduler::wake(Thread& thread) {
  resume(thread, std::max(now(), clock_of(thread)) + times_of(*thread.process).wakeup);
}

// Ends the thread's wait with EINTR. False: the thread does not wait, or its wait ignores signals.
bool ThreadScheduler::end_wait_for_signal(Thread& thread) {
  switch (thread.state) {
    case ThreadState::sleeping:
    case ThreadState::awaiting_descriptors:
    case ThreadState::awaiting_address:
    case ThreadState::awaiting_child:
    case ThreadState::awaiting_signal:
    case ThreadState::awaiting_ipc: resume(thread, now(), EINTR); return true;
    case ThreadState::polling: end_loop(thread, now() + times_of(*thread.process).detect, false); return true;
    case ThreadState::spinning: resume(thread, now()); return true;
    default: return false;
  }
}

// Memory changed: the loop ends with its first look that ends at `visible` or later.
void ThreadScheduler::end_loop(Thread& thread, Duration visible, bool only_stores) {
  if (thread.state != ThreadState::polling) return;
  thread.loop->only_stores = thread.loop->only_stores && only_stores;
  const Duration at = std::max(now(), thread.loop->first_look(visible).ends - times_of(*thread.process).detect);
  if (thread.at && *thread.at <= at) return;
  schedule(thread, ThreadState::polling, at, false);
}

// A process skips the call that wakes other processes while no thread of its host waits in shared memory.
void ThreadScheduler::show_shared_waits(std::uint32_t host) {
  std::uint32_t waits = 0;
  const auto of_host = [&](const auto& process) { return process->alive && process->identity().host == host; };
  for (const auto& process : processes_)
    if (of_host(process))
      waits += std::uint32_t(std::ranges::count_if(
          process->threads, [](const Thread& thread) { return waits_in_shared_memory(thread.wait); }));
  for (const auto& process : processes_)
    if (of_host(process)) std::atomic_ref(process->header().shared_waits).store(waits);
}

// --- Processes that are stopped.

// Called for a thread that is due while its process is stopped.
void ThreadScheduler::hold(Thread& thread) {
  timed_.erase(&thread);
  thread.at.reset();
  thread.held = true;
  leave_processor(thread);
}

void ThreadScheduler::end_hold(Thread& thread) {
  thread.held = false;
  thread.at = std::max(now(), clock_of(thread)) + times_of(*thread.process).wakeup;
  timed_.insert(&thread);
  arm();
}

// --- Order.

// True: another thread of the process waits for memory that this one may store to. Stores become known at the end of a
// turn.
bool ThreadScheduler::is_watched(const Thread& thread) const {
  return watching_.at(thread.process) > std::size_t(watches(thread.state));
}

bool ThreadScheduler::is_watched_by_other_processes(const Thread& thread) const {
  return watching_of_host_.at(thread.process->identity().host) > watching_.at(thread.process);
}

bool ThreadScheduler::has_prompt_neighbours(const Thread& thread) const {
  return prompt_.at(thread.process) > std::size_t(goes_on_at_once(thread.state));
}

Thread* ThreadScheduler::next_due() const {
  if (timed_.empty()) return nullptr;
  Thread* first = *timed_.begin();
  return *first->at <= now() ? first : nullptr;
}

void ThreadScheduler::run_due_actions() {
  std::function<void()> action;
  while (actions_.pop_due(action)) action();
}

void ThreadScheduler::descriptors_may_be_ready() {
  descriptors_changed_ = true;
  if (running_ == nullptr) step_.arm(now());
}

// --- Progress.

void ThreadScheduler::progressed() {
  ++progress_;
  progressed_at_ = now();
}

void ThreadScheduler::note_vain_wait(Thread& thread, ThreadState wait) const {
  if (std::exchange(thread.seen_progress, progress_) != progress_) thread.waits_in_vain = 0;
  ++thread.waits_in_vain;
  thread.last_wait = wait;
}

bool ThreadScheduler::waits_in_vain(const Thread& thread) const {
  return thread.seen_progress == progress_ && thread.waits_in_vain >= kVainEnds;
}

void ThreadScheduler::note_expiry(Timer& timer) const {
  if (std::exchange(timer.seen_progress, progress_) != progress_) timer.fired_in_vain = 0;
  ++timer.fired_in_vain;
}

bool ThreadScheduler::rings_in_vain(const Timer& timer) const {
  return !timer.deadline || (timer.seen_progress == progress_ && timer.fired_in_vain >= kVainEnds);
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
