// SPDX-License-Identifier: Apache-2.0
// Controls simulated time while real programs run. One thread of one program at a time has the turn: the thread with
// the earliest clock. The simulation advances up to that clock. docs/virtual-time.md has the rules, the states and the
// reasons.
#pragma once

#include <chrono>
#include <climits>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/base/event_queue.h"
#include "sim/attached/output.h"
#include "sim/attached/processes/process.h"
#include "sim/attached/programs.h"
#include "sim/attached/time/host_turns.h"
#include "sim/attached/time/thread.h"

namespace rnicsim::sim {

// CPU delays of a host, in ps.
struct HostTimes {
  Duration detect{80'000};     // from a DMA write until a spinning or polling CPU sees the data
  Duration wakeup{3'000'000};  // from an event until a blocked thread runs again
};

struct TimeKeeperParams {
  bool simulated = true;
  HostTimes times;
  std::vector<HostTimes> of_hosts;  // by host number, if hosts differ; empty: `times` holds for all
  // Each look (an empty poll or a yield) takes a turn: slower, with the same results.
  bool each_look = false;
  // A thread that does nothing but read clocks may be ahead of simulated time by a part of the time since its last
  // other act, and by this at most.
  Duration most_clock_slack{1'000'000'000};
  Duration most_unseen{1'000'000'000};      // looks without a turn may end that far ahead of simulated time
  Duration least_unseen{1'000'000};         // ... at least, even if other processes of the host store meanwhile
  Duration act_slack{100'000'000};          // how far a thread that posts may be ahead
  int watched_end = INT_MAX;                // copies of watched descriptors have numbers below this
  std::optional<Duration> look_when_quiet;  // period of on_quiet while there is no progress
};

// Executes the calls of threads that are not about time or threads.
class CallHandler {
 public:
  virtual ~CallHandler() = default;
  // At the present time. True: the slot has the answer. False: the thread's state says for what the thread waits.
  virtual bool execute(Thread& thread) = 0;
  // Called after a thread gave its turn back: takes data that the thread wrote to sockets.
  virtual void collect_all(Duration at) = 0;
  virtual int descriptor() const = 0;  // readable when collect_all() has something to take
  virtual void mmio_write(Process& process, const abi::MmioWrite& write) = 0;
  virtual void milestone(Process&, const abi::Milestone&) {}
  // Earliest time at which a device of `host` may write to host memory, if no event happens in the devices before
  // `next`. quiet_until_doorbell(): if no software writes to a device before `next`.
  virtual Duration quiet_until(std::uint32_t /*host*/, Duration next) const { return next; }
  virtual Duration quiet_until_doorbell(std::uint32_t /*host*/, Duration next) const { return next; }
  virtual void process_died(Process& process) = 0;
  virtual void process_stopped(Process&, int /*signal*/) {}  // `signal` SIGCONT: the process runs again
  // True: no descriptor is left for one more object of the program.
  virtual bool lacks_descriptors(const Process&, const char* /*what*/) { return false; }
  virtual std::uint32_t new_tid(const Process&) { return 0; }  // thread number as the program sees it
};

class OutsideWorld;

class TimeKeeper : public sc_core::sc_module {
 public:
  TimeKeeper(sc_core::sc_module_name name, const TimeKeeperParams& params, Programs& programs, OutputRelay& output);
  void set_handler(CallHandler& handler) { handler_ = &handler; }
  // Called when the simulation has no more events: waits for input from outside. True: there are new events.
  bool outlast_silence();
  // Called when no event can happen and no thread returned. True: wait on, since input may come from outside.
  std::function<bool()> on_standstill;
  // Called from time to time in real time, also during turns: signals, attaching programs.
  std::function<void()> while_waiting;
  // Called from time to time without progress; the times depend on the simulation only.
  std::function<void()> on_quiet;
  // Hosts outside of the simulation, in real time; nullptr: none.
  OutsideWorld* outside = nullptr;
  // Calls `action` at `when`, before any thread that is due at that time.
  void at(Duration when, std::function<void()> action);

  HostTurns& turns_of(std::uint32_t host) { return turns_of_[host]; }
  Process& add(std::unique_ptr<Process> process, Duration start);
  const std::deque<std::unique_ptr<Process>>& processes() const { return processes_; }

  // --- For the call handler.
  void start_thread(Process& process, std::uint32_t index, Duration start);
  void resume(Thread& thread, Duration at, int error = 0);  // answers the thread's call
  void wait(Thread& thread, ThreadState state, std::optional<Duration> until);
  void end_process(Process& process);  // the process is dead; its threads are removed
  // Sends SIGHUP and SIGCONT to stopped processes that `dead` leaves orphaned.
  void release_orphans(const Process& dead);
  void forget_threads(Process& process);
  void share_events(const Process& parent, Process& child);  // the child inherits timerfds and signalfds
  // exec: removes state that the new image does not inherit.
  void replace_image(Process& process);
  // Gives the thread the turn and does not wait for its end.
  void release(Thread& thread);
  void descriptors_may_be_ready();  // after a write to a descriptor
  void poll_descriptors();          // wakes threads whose wait for descriptors is over
  // Wait and wake-up for a pipe to which only the simulator writes.
  void await_pipe(Thread& thread, const Descriptor& pipe);
  void pipe_written(Process& process, const Descriptor& pipe);
  // Relays output of programs. True: there was some.
  bool relay_output() {
    const bool any = output_.drain();
    if (any) progressed();
    return any;
  }
  // For calls that wait in real time: relays output, serves visitors and signals. False: the run has ended.
  bool look_around();
  void end() { ended_ = true; }  // the run has ended
  bool is_patient() const { return patient_; }
  bool is_stopped(const Thread& thread) const { return programs_.is_stopped(thread); }
  const HostTimes& times_of(const Process& process) const {
    return params_.of_hosts.empty() ? params_.times : params_.of_hosts[process.identity().host];
  }

  // --- Called by the device models.
  void memory_written(Process& process, std::uint64_t address, std::uint64_t bytes);  // by DMA
  void interrupted(Process& process);

  // Reasons why the run is not reproducible; empty: it is.
  const std::set<std::string>& disturbances() const { return disturbances_; }
  // Sends a signal to a process, or to the thread `only`, at the present simulated time. False: the queue of pending
  // signals is full.
  bool raise(Process& process, const abi::SignalRecord& signal, Thread* only = nullptr);
  static Thread* thread_numbered(Process& process, std::uint32_t virtual_tid);  // nullptr: no such thread
  void disturbed(std::string why) { disturbances_.insert(std::move(why)); }
  bool all_wait_for_descriptors() const;  // without a deadline, or in vain
  bool waits_for_real_kernel() const { return in_real_kernel_ != 0; }
  // Notes progress: output, network data, a DMA write, an act of a program on the device, the begin or end of a
  // process. Polls, reads of memory and waits that end by their deadline are no progress.
  void progressed();
  Duration progressed_at() const { return progressed_at_; }
  // True: all threads wait without a deadline, or have waited to the end of several waits since the last progress.
  bool all_wait_in_vain() const;
  // Handles processes that were killed outside their turn at once, not when a parent waits or events run out.
  void find_the_dead();
  // Wakes threads that wait for a signal which came from outside the simulation. True: there was one.
  bool hear_from_outside();
  // For people: the thread that has the turn, or gets it next.
  std::string awaited() const;
  // For people: the state of every thread, one line each.
  std::string describe() const;
  void be_patient(bool patient) { patient_ = patient; }  // a debugger holds a program
  // In real time: True if every program waits, in the simulator or in the real kernel.
  bool all_sleep() const;

 private:
  struct Earlier {
    bool operator()(const Thread* a, const Thread* b) const;
  };

  // --- time_keeper.cpp
  void step();
  void step_simulated();
  void run_due_actions();
  static Thread& slot_for(Process& process, std::uint32_t index);
  void run(Thread& thread);
  Duration world_wanted(const Thread& thread, bool pending) const;
  bool bury_the_dead();
  void deliver_posted();
  void wake_spinning(Process& process);
  void end_loop(Thread& thread, Duration visible, bool only_stores);
  void continue_loop(Thread& thread);
  void note_end_of_wait(Thread& thread);
  void note_vain_wait(Thread& thread, ThreadState wait);
  bool waits_in_vain(const Thread& thread) const;
  void look_when_quiet();
  void schedule(Thread& thread, ThreadState state, std::optional<Duration> at, bool call_pending);
  static bool watches(ThreadState state);
  static bool goes_on_at_once(ThreadState state);
  void set_state(Thread& thread, ThreadState state);
  void unschedule(Thread& thread);
  void arm();
  Thread* next_due();

  // --- time_calls.cpp. True: the call is answered.
  bool execute(Thread& thread);
  bool execute_by_handler(Thread& thread);
  bool look(Thread& thread);
  bool spin(Thread& thread);
  bool park(Thread& thread);
  bool wait_descriptors(Thread& thread, abi::ThreadSlot& slot);
  static bool is_ready(const Thread& thread);  // one of its watched descriptors
  void wake(Thread& thread);
  bool new_thread(const Thread& maker, abi::ThreadSlot& slot);
  bool exit_thread(Thread& thread, abi::ThreadSlot& slot);
  void end_thread(Thread& thread);

  // --- timers.cpp
  bool new_timer(Thread& thread, abi::ThreadSlot& slot);
  bool set_timer(Process& process, abi::ThreadSlot& slot);
  static bool get_timer(Process& process, abi::ThreadSlot& slot);
  void start_timer(Process& process, const std::shared_ptr<Timer>& timer);
  void end_timer(Process& process, const std::shared_ptr<Timer>& ended);
  static std::optional<Duration> next_end(const Process& process);
  bool rings_in_vain(const Timer& timer) const;

  // --- stops.cpp
  void hold(Thread& thread);
  void stop(Process& process, std::uint32_t signal);
  void go_on(Process& process);
  static void drop_pending(Process& process, SignalSet set);
  bool in_orphaned_group(const Process& process) const;
  static bool held_together(const Process& one, pid_t group, pid_t session);

  // --- signals.cpp
  void give(Thread& thread, const abi::SignalRecord& signal);
  bool end_wait_for_signal(Thread& thread);
  void show_pending(Process& process);
  std::optional<abi::SignalRecord> take_pending(Thread& thread, SignalSet set);
  bool await_signal(Thread& thread, abi::ThreadSlot& slot, std::optional<Duration> until);
  bool take_signals(Thread& thread, const abi::ThreadSlot& slot);
  static void hand_over_signals(Thread& thread);

  // --- signal_watches.cpp
  bool watch_signals(Thread& thread, abi::ThreadSlot& slot);
  bool read_signals(Thread& thread, abi::ThreadSlot& slot);
  void show_watches(Process& process, SignalSet waiting);
  SignalSet outside_signals(const Thread& thread) const;
  bool hears_from_outside(Thread& thread);
  bool find_event(Thread& thread, abi::ThreadSlot& slot);

  // --- address_waits.cpp
  struct Wake {
    std::uint64_t address;
    std::uint64_t most;
    bool shared;
    Duration at;
    bool spins = false;  // the threads do not sleep: they see the word after `detect`
  };
  void wait_address(Thread& thread, const abi::ThreadSlot& slot, std::optional<Duration> until);
  std::uint64_t wake_address(Process& process, const Wake& wake);
  void wake_sharers(std::uint32_t host);
  void wake_all(Process& process);
  void show_shared_waits(std::uint32_t host);
  Thread* first_waiter(Process& process, const Wake& wake, const std::optional<SharedWord>& word);

  // --- turn.cpp
  void grant(Thread& thread);
  bool await_return(Thread& thread);
  Duration clock_limit(const Thread& thread) const;
  bool is_watched(const Thread& thread) const;
  bool is_watched_by_other_processes(const Thread& thread) const;
  bool has_prompt_neighbours(const Thread& thread) const;
  std::optional<Duration> next_timer_end(std::uint32_t host) const;
  Duration quiet_until(const Thread& thread) const;
  void report_stuck(const Thread& thread, const std::string& why) const;
  void collect(Thread& thread);
  void show_stores(Thread& thread);
  static bool stored_nothing(const Thread& thread);
  void take_posted(Thread& thread);
  void take_milestones(Thread& thread);
  bool poll_real_kernel();

  // --- real_time.cpp
  void step_real();
  bool serve_slots();
  bool await_input(Duration next);
  Duration time_to_next() const;

  // A thread with that many vain waits, or a timer with that many vain expiries, since the last progress only waits.
  static constexpr std::uint32_t kVainEnds = 3;

  const TimeKeeperParams params_;
  Programs& programs_;
  OutputRelay& output_;
  CallHandler* handler_ = nullptr;
  std::map<std::uint32_t, HostTurns> turns_of_;  // by host
  std::deque<std::unique_ptr<Process>> processes_;
  std::set<Thread*, Earlier> timed_;  // threads with `at`
  EventQueue<std::function<void()>> actions_{[this] { step(); }};
  struct PostedWrite {
    Process* process;
    abi::MmioWrite write;
  };
  EventQueue<PostedWrite> posted_{[this] { deliver_posted(); }};
  Alarm step_{[this] { step(); }};
  std::uint64_t next_ticket_ = 0;
  std::uint32_t next_shared_number_ = 1u << 30;  // numbers timerfds and signalfds; numbers below belong to one process
  bool descriptors_changed_ = false;
  bool patient_ = false;
  bool ended_ = false;
  Thread* running_ = nullptr;
  std::uint64_t turns_ = 0;
  std::uint64_t progress_ = 0;
  Duration progressed_at_;
  Duration quiet_look_;             // when on_quiet was last called
  std::size_t in_real_kernel_ = 0;  // number of threads
  // Counts of threads in a state; looked up by key, never iterated, since pointers have no fixed order.
  std::map<const Process*, std::size_t> prompt_;           // threads that continue as soon as their event happens
  std::map<const Process*, std::size_t> watching_;         // threads that wait for memory that others may store to
  std::map<std::uint32_t, std::size_t> watching_of_host_;  // the same, for all processes of a host
  std::set<std::string> disturbances_;
  // Real time: when the simulation began to wait for the real clock, and the simulated time for which it waits.
  Duration idle_next_{-1};
  std::chrono::steady_clock::time_point idle_start_;
};

}  // namespace rnicsim::sim
