#include "sim/attached/time_keeper.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <tuple>

namespace rnicsim::sim {
namespace {

using abi::ThreadSlot;

// Locks are taken and released within a turn, in real memory: who waits for one must be known before anyone else runs.
bool at_once(abi::Call call) { return call == abi::Call::wait_address || call == abi::Call::wake_address; }

}  // namespace

// Ties of time: host, then process in order of attaching, then thread.
bool TimeKeeper::Earlier::operator()(const Thread* a, const Thread* b) const {
  const auto key = [](const Thread* thread) {
    const auto& identity = thread->process->identity();
    return std::tuple(*thread->at, identity.host, identity.order, thread->index);
  };
  return key(a) < key(b);
}

TimeKeeper::TimeKeeper(sc_core::sc_module_name name, const TimeKeeperParams& params, OutputRelay& output)
    : sc_module(name), params_(params), output_(output) {
  SC_HAS_PROCESS(TimeKeeper);
  SC_METHOD(step);
  sensitive << step_event_ << actions_.event();
  SC_METHOD(deliver_posted);
  sensitive << posted_.event();
  dont_initialize();
}

// --- Scheduling.

void TimeKeeper::unschedule(Thread& thread) {
  if (thread.at) timed_.erase(&thread);
  thread.at.reset();
  thread.watched.clear();
}

void TimeKeeper::schedule(Thread& thread, ThreadState state, std::optional<Duration> at, bool call_pending) {
  unschedule(thread);
  thread.state = state;
  thread.call_pending = call_pending;
  thread.at = at;
  if (!at) return;
  timed_.insert(&thread);
  arm();
}

void TimeKeeper::arm() {
  if (running_ != nullptr || timed_.empty()) return;
  const Duration wait = std::max((*timed_.begin())->at.value() - now(), Duration{});
  step_event_.notify(to_sc_time(wait));
}

void TimeKeeper::at(Duration when, std::function<void()> action) { actions_.push(std::max(when, now()), std::move(action)); }

void TimeKeeper::resume(Thread& thread, Duration at, int error) {
  slot_of(thread).error = error;
  schedule(thread, ThreadState::due, std::max(at, now()), false);
}

void TimeKeeper::wait(Thread& thread, ThreadState state, std::optional<Duration> until) {
  // The watched descriptors were put there for this very wait.
  auto watched = std::move(thread.watched);
  schedule(thread, state, until, false);
  thread.watched = std::move(watched);
}

Process& TimeKeeper::add(std::unique_ptr<Process> process, Duration start) {
  Process& added = *processes_.emplace_back(std::move(process));
  start_thread(added, 0, start);
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
  slot.now = std::uint64_t(start.ps);
  thread.idle_since = start;
  schedule(thread, ThreadState::due, start, false);
}

Thread& TimeKeeper::add_thread(Process& process) {
  const auto free = std::ranges::find(process.threads, ThreadState::free, &Thread::state);
  const auto index = std::uint32_t(free - process.threads.begin());
  if (index >= abi::kMaxThreads) throw std::runtime_error("too many threads");
  Thread& thread = slot_for(process, index);
  process.slot(index).turn = ThreadSlot::kKernel;
  thread.state = ThreadState::starting;
  return thread;
}

// Between two empty polls only the clock changes. A program that does not look at it does not mind how long it waits.
void TimeKeeper::poll_again(Thread& thread) {
  const bool looks_at_clock = slot_of(thread).clock_reads != thread.seen_clock_reads;
  if (thread.polled_in_vain)
    thread.patience = looks_at_clock ? params_.poll_interval : std::min(thread.patience * 2, params_.most_poll_interval);
  thread.patience = std::max(thread.patience, params_.poll_interval);
  wait(thread, ThreadState::polling, now() + thread.patience);
}

void TimeKeeper::end_thread(Thread& thread) { schedule(thread, ThreadState::free, std::nullopt, false); }

void TimeKeeper::forget_threads(Process& process) {
  for (Thread& thread : process.threads) end_thread(thread);
}

void TimeKeeper::end_process(Process& process) {
  process.alive = false;
  process.alarm = {};
  forget_threads(process);
}

// --- The turn.

void TimeKeeper::step() { params_.simulated ? step_simulated() : step_real(); }

void TimeKeeper::step_simulated() {
  raise_alarms();
  std::function<void()> action;
  while (actions_.pop_due(action)) action();
  for (;;) {
    if (descriptors_changed_) poll_descriptors();
    Thread* thread = next_due();
    if (thread == nullptr) break;
    run(*thread);
    raise_alarms();
    while (actions_.pop_due(action)) action();
  }
  arm();
}

bool TimeKeeper::outlast_silence() {
  while (timed_.empty() && actions_.empty()) {
    if (poll_real_kernel()) continue;
    if (on_standstill && !on_standstill()) return false;
  }
  arm();
  return true;
}

Thread* TimeKeeper::next_due() {
  if (timed_.empty()) return nullptr;
  Thread* first = *timed_.begin();
  return *first->at <= now() ? first : nullptr;
}

void TimeKeeper::run(Thread& thread) {
  if (!thread.call_pending) {
    thread.polled_in_vain = thread.state == ThreadState::polling;
    thread.seen_clock_reads = slot_of(thread).clock_reads;
  }
  // A wait that came to its end.
  if (thread.state == ThreadState::awaiting_descriptors || thread.state == ThreadState::awaiting_address)
    slot_of(thread).error = ETIMEDOUT;
  const bool call_pending = thread.call_pending;
  const Duration due = *thread.at;
  unschedule(thread);
  slot_of(thread).now = std::max(slot_of(thread).now, std::uint64_t(due.ps));
  bool execute = call_pending;
  for (;;) {
    if (execute && !handler_->execute(thread)) return;
    if (!thread.process->alive || thread.state == ThreadState::free) return;
    // Its clock is ahead of the world: others may come first.
    if (clock_of(thread) > now() && !(execute && at_once(slot_of(thread).call)))
      return schedule(thread, ThreadState::due, clock_of(thread), false);
    grant(thread);
    if (!await_return(thread)) return;
    collect(thread);
    const abi::Call call = slot_of(thread).call;
    execute = call != abi::Call::sync;
    if (clock_of(thread) > now() && !at_once(call)) return schedule(thread, ThreadState::due, clock_of(thread), execute);
  }
}

void TimeKeeper::deliver_posted() {
  PostedWrite posted;
  while (posted_.pop_due(posted))
    if (posted.process->alive) handler_->mmio_write(*posted.process, posted.write);
}

// --- Waking.

void TimeKeeper::memory_written(Process& process, std::uint64_t address) {
  ++process.memory_writes;
  const bool ring = address >= abi::kMemoryAddress && address - abi::kMemoryAddress < abi::kMemoryBytes;
  if (ring) {
    ++process.ring_writes;
    process.last_ring_write = now();
  }
  for (Thread& thread : process.threads) {
    const bool sees = thread.state == ThreadState::spinning || (ring && thread.state == ThreadState::polling);
    if (sees) resume(thread, now() + params_.detect);
  }
}

void TimeKeeper::interrupted(Process& process) {
  ++process.memory_writes;
  for (Thread& thread : process.threads)
    if (thread.state == ThreadState::spinning) resume(thread, now() + params_.detect);
}

void TimeKeeper::wake_address(Process& process, std::uint64_t address, std::uint64_t most, Duration at) {
  while (most-- > 0) {
    Thread* first = nullptr;
    for (Thread& thread : process.threads) {
      if (thread.state != ThreadState::awaiting_address || thread.address != address) continue;
      if (first == nullptr || thread.wait_ticket < first->wait_ticket) first = &thread;
    }
    if (first == nullptr) return;
    resume(*first, std::max(at, clock_of(*first)) + params_.wakeup);
  }
}

void TimeKeeper::descriptors_may_be_ready() {
  descriptors_changed_ = true;
  if (running_ == nullptr) step_event_.notify(sc_core::SC_ZERO_TIME);
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
    if (watched[i].revents != 0 && owner[i]->state == ThreadState::awaiting_descriptors)
      resume(*owner[i], std::max(now(), clock_of(*owner[i])) + params_.wakeup);
}

void TimeKeeper::set_alarm(Process& process, std::optional<Duration> deadline, Duration interval) {
  process.alarm = {deadline, interval};
  if (deadline) at(*deadline, [] {});
}

// SIGALRM reaches a process in its main thread: at once if that waits, else when it next comes back.
void TimeKeeper::raise_alarms() {
  for (const auto& process : processes_) {
    Alarm& alarm = process->alarm;
    if (!process->alive || !alarm.deadline || *alarm.deadline > now()) continue;
    alarm.deadline = alarm.interval.ps > 0 ? std::optional(now() + alarm.interval) : std::nullopt;
    if (alarm.deadline) at(*alarm.deadline, [] {});
    Thread& main = process->threads.front();
    process->slot(0).signals |= ThreadSlot::kAlarm;
    switch (main.state) {
      case ThreadState::sleeping:
      case ThreadState::awaiting_descriptors:
      case ThreadState::awaiting_child:
        resume(main, now(), EINTR);
        break;
      case ThreadState::polling:
      case ThreadState::spinning:
        resume(main, now());
        break;
      default:
        break;
    }
  }
}

bool TimeKeeper::all_wait_for_descriptors() const {
  return std::ranges::all_of(processes_, [](const auto& process) {
    return !process->alive || std::ranges::all_of(process->threads, [](const Thread& thread) {
      return thread.state == ThreadState::free || thread.state == ThreadState::awaiting_child ||
             (thread.state == ThreadState::awaiting_descriptors && !thread.at);
    });
  });
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
    case ThreadState::awaiting_device: return "waiting for the device";
    case ThreadState::awaiting_peer: return "connecting";
    case ThreadState::in_real_kernel: return "blocked in the real kernel";
  }
  return "?";
}

}  // namespace rnicsim::sim
