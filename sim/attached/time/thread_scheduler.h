// SPDX-License-Identifier: Apache-2.0
// Threads of all processes: their states, the order of their next turns, and the progress of the programs.
// docs/virtual-time.md has the states and their transitions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "model/base/event_queue.h"
#include "sim/attached/processes/process.h"
#include "sim/attached/time/time_keeper_params.h"

namespace rnicsim::sim {

class ThreadScheduler {
 public:
  // `step`: called when a thread or an action is due.
  ThreadScheduler(const TimeKeeperParams& params, std::function<void()> step);

  Process& add(std::unique_ptr<Process> process) { return *processes_.emplace_back(std::move(process)); }
  const std::deque<std::unique_ptr<Process>>& processes() const { return processes_; }
  const HostTimes& times_of(const Process& process) const {
    return params_.of_hosts.empty() ? params_.times : params_.of_hosts[process.identity().host];
  }
  static Thread& slot_for(Process& process, std::uint32_t index);

  // --- States.
  void schedule(Thread& thread, ThreadState state, std::optional<Duration> at, bool call_pending);
  void unschedule(Thread& thread);
  void set_state(Thread& thread, ThreadState state);
  void wait(Thread& thread, ThreadState state, std::optional<Duration> until, Wait wait = {});
  void resume(Thread& thread, Duration at, int error = 0);  // answers the thread's call
  void wake(Thread& thread);                                // resumes the thread after the host's HostTimes::wakeup
  bool end_wait_for_signal(Thread& thread);
  void end_loop(Thread& thread, Duration visible, bool only_stores);
  void show_shared_waits(std::uint32_t host);
  void hold(Thread& thread);
  void end_hold(Thread& thread);

  // --- Order.
  struct Earlier {
    bool operator()(const Thread* a, const Thread* b) const;
  };
  const std::set<Thread*, Earlier>& timed() const { return timed_; }  // threads with `at`
  Thread* next_due() const;
  Thread* running() const { return running_; }  // the thread that has the turn; nullptr: none
  void set_running(Thread* thread) { running_ = thread; }
  bool is_watched(const Thread& thread) const;
  bool is_watched_by_other_processes(const Thread& thread) const;
  bool has_prompt_neighbours(const Thread& thread) const;
  std::size_t in_real_kernel() const { return in_real_kernel_; }  // number of threads
  // Calls `action` at `when`, before any thread that is due at that time.
  void at(Duration when, std::function<void()> action);
  void run_due_actions();
  bool has_actions() const { return !actions_.empty(); }
  void arm();
  void step_at(Duration when) { step_.arm(when); }
  void descriptors_may_be_ready();  // after a write to a descriptor
  void descriptors_changed() { descriptors_changed_ = true; }
  bool take_descriptors_changed() { return std::exchange(descriptors_changed_, false); }

  // --- Progress: output, network data, a DMA write, an act of a program on the device, the begin or end of a process.
  // Polls, reads of memory and waits that end by their deadline are no progress.
  void progressed();
  Duration progressed_at() const { return progressed_at_; }
  void note_vain_wait(Thread& thread, ThreadState wait) const;
  bool waits_in_vain(const Thread& thread) const;
  void note_expiry(Timer& timer) const;
  bool rings_in_vain(const Timer& timer) const;

 private:
  static bool watches(ThreadState state);
  static bool goes_on_at_once(ThreadState state);

  // A thread with that many vain waits, or a timer with that many vain expiries, since the last progress only waits.
  static constexpr std::uint32_t kVainEnds = 3;

  const TimeKeeperParams& params_;
  const std::function<void()> on_step_;
  std::deque<std::unique_ptr<Process>> processes_;
  std::set<Thread*, Earlier> timed_;
  EventQueue<std::function<void()>> actions_{[this] { on_step_(); }};
  Alarm step_{[this] { on_step_(); }};
  Thread* running_ = nullptr;
  bool descriptors_changed_ = false;
  std::uint64_t progress_ = 0;
  Duration progressed_at_;
  std::size_t in_real_kernel_ = 0;
  // Counts of threads in a state; looked up by key, never iterated, since pointers have no fixed order.
  std::map<const Process*, std::size_t> prompt_;           // threads that continue as soon as their event happens
  std::map<const Process*, std::size_t> watching_;         // threads that wait for memory that others may store to
  std::map<std::uint32_t, std::size_t> watching_of_host_;  // the same, for all processes of a host
};

}  // namespace rnicsim::sim
