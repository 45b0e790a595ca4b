// Who owns time when real programs run: one thread of one program at a time has the turn, the one whose clock is least;
// the simulation advances only up to it. docs/virtual-time.md has the rules, the states and the reasons.
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
#include "sim/attached/host_turns.h"
#include "sim/attached/output.h"
#include "sim/attached/process.h"
#include "sim/attached/programs.h"
#include "sim/attached/thread.h"

namespace rnicsim::sim {

// A host's CPU.
struct HostTimes {
  Duration detect{80'000};            // memory written until a spinning or polling CPU sees it
  Duration wakeup{3'000'000};         // an event until a blocked thread runs again
};

struct TimeKeeperParams {
  bool simulated = true;
  HostTimes times;
  std::vector<HostTimes> of_hosts;          // by number, where they differ; empty: all have `times`
  bool each_look = false;               // each look takes a turn: slow, and nothing else is different
  // A thread that reads clocks and looks at nothing else may be ahead of the world: by a part of the time since it did
  // anything else, and so far at most.
  Duration most_clock_slack{1'000'000'000};
  Duration most_unseen{1'000'000'000};       // looks that need no turn end so long ahead of the world at most
  Duration least_unseen{1'000'000};          // ... and may, whatever other processes of the host store meanwhile
  Duration act_slack{100'000'000};           // the same for a thread that posts
  int watched_end = INT_MAX;            // copies of descriptors that threads wait for are numbered below
  std::optional<Duration> look_when_quiet;  // how often to ask on_quiet while nothing makes progress
};

// What executes the calls that threads make, but for those that are about time and threads.
class CallHandler {
 public:
  virtual ~CallHandler() = default;
  // At the present time. True: answered (in the slot); false: the thread's state says what it waits for.
  virtual bool execute(Thread& thread) = 0;
  // After a thread gave its turn back: what it wrote to sockets.
  virtual void collect_all(Duration at) = 0;
  virtual int descriptor() const = 0;                  // readable when there is something to collect
  virtual void mmio_write(Process& process, const abi::MmioWrite& write) = 0;
  virtual void milestone(Process&, const abi::Milestone&) {}
  // No device of this host writes into its memory before this time, if nothing happens in the devices before `next`; if
  // no software writes to a device before `next`.
  virtual Duration quiet_until(std::uint32_t /*host*/, Duration next) const { return next; }
  virtual Duration quiet_until_doorbell(std::uint32_t /*host*/, Duration next) const { return next; }
  virtual void process_died(Process& process) = 0;
  virtual void process_stopped(Process&, int /*signal*/) {}  // SIGCONT: it goes on
  // For one more object that holds a descriptor of a program's.
  virtual bool lacks_descriptors(const Process&, const char* /*what*/) { return false; }
  virtual std::uint32_t new_tid(const Process&) { return 0; }  // the number of a thread, as its program knows it
};

class OutsideWorld;

class TimeKeeper : public sc_core::sc_module {
 public:
  TimeKeeper(sc_core::sc_module_name name, const TimeKeeperParams& params, Programs& programs, OutputRelay& output);
  void set_handler(CallHandler& handler) { handler_ = &handler; }
  // When the simulation has run dry: waits for what only the real world can bring. True: there is something to do
  // again.
  bool outlast_silence();
  // Nothing can happen any more and nobody came back: true = go on waiting (outside input may come).
  std::function<bool()> on_standstill;
  // Called now and then, whoever has the turn: signals, visitors.
  std::function<void()> while_waiting;
  // Called now and then, at times that only the simulation decides, while nothing makes progress.
  std::function<void()> on_quiet;
  // In real time: the world outside, if some hosts are there.
  OutsideWorld* outside = nullptr;
  // Run at the given times, before any thread that is due then.
  void at(Duration when, std::function<void()> action);

  HostTurns& turns_of(std::uint32_t host) { return turns_of_[host]; }
  Process& add(std::unique_ptr<Process> process, Duration start);
  const std::deque<std::unique_ptr<Process>>& processes() const { return processes_; }

  // --- For the call handler.
  void start_thread(Process& process, std::uint32_t index, Duration start);
  void resume(Thread& thread, Duration at, int error = 0);          // the call is answered then
  void wait(Thread& thread, ThreadState state, std::optional<Duration> until);
  void end_process(Process& process);                               // dead: forgets its threads
  void release_orphans(const Process& dead);                        // stopped ones, whom nobody would let go on
  void forget_threads(Process& process);
  void share_events(const Process& parent, Process& child);         // what it has by descriptors it inherited
  void replace_image(Process& process);                             // exec: what is not the new one's goes
  void release(Thread& thread);                                     // gives the turn; nobody waits for it to come back
  void descriptors_may_be_ready();                                  // something was written to one
  void poll_descriptors();                                          // wakes those whose wait is over
  // The same for a pipe to which the simulator alone writes.
  void await_pipe(Thread& thread, const Descriptor& pipe);
  void pipe_written(Process& process, const Descriptor& pipe);
  // True: there was some.
  bool relay_output() {
    const bool any = output_.drain();
    if (any) progressed();
    return any;
  }
  // Of a call that waits in real time: output, and whatever else is outside. False: the run is at its end.
  bool look_around();
  void end() { ended_ = true; }  // nobody waits for anything any more
  bool is_patient() const { return patient_; }
  bool is_stopped(const Thread& thread) const { return programs_.is_stopped(thread); }
  const HostTimes& times_of(const Process& process) const {
    return params_.of_hosts.empty() ? params_.times : params_.of_hosts[process.identity().host];
  }

  // --- The world tells.
  void memory_written(Process& process, std::uint64_t address, std::uint64_t bytes);  // by DMA
  void interrupted(Process& process);

  // The run was not reproducible, and why (empty: it was).
  const std::set<std::string>& disturbances() const { return disturbances_; }
  // A signal for a process, or one thread of it alone, at the world's time. False: too many wait for it already.
  bool raise(Process& process, const abi::SignalRecord& signal, Thread* only = nullptr);
  static Thread* thread_numbered(Process& process, std::uint32_t virtual_tid);  // nullptr: there is none
  void disturbed(std::string why) { disturbances_.insert(std::move(why)); }
  bool all_wait_for_descriptors() const;  // without an end, or in vain
  bool waits_for_real_kernel() const { return in_real_kernel_ != 0; }
  // Progress: something was printed, came from the network or was written by the device, a program acted on the device,
  // a process began or ended. Not: polls, looks at memory, waits that end by their own deadline.
  void progressed();
  Duration progressed_at() const { return progressed_at_; }
  // Nobody can be expected to do anything but wait: all threads wait without an end, or have waited to the end of
  // several waits since there was progress.
  bool all_wait_in_vain() const;
  // Processes that died outside their turn, killed by somebody: now, and not when their parents wait or time runs dry.
  void find_the_dead();
  // Signals from outside the simulation, for those that wait for them. True: there was one.
  bool hear_from_outside();
  // Who has the turn, or gets it next: for people.
  std::string awaited() const;
  // Who holds time: a line a thread.
  std::string describe() const;
  void be_patient(bool patient) { patient_ = patient; }             // a debugger holds a program
  // In real time: every program waits, in the simulator or in the real kernel.
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

  // --- time_calls.cpp: true = answered
  bool execute(Thread& thread);
  bool execute_by_handler(Thread& thread);
  bool look(Thread& thread);
  bool spin(Thread& thread);
  bool park(Thread& thread);
  bool wait_descriptors(Thread& thread, abi::ThreadSlot& slot);
  static bool is_ready(const Thread& thread);  // what it watches
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
    bool spins = false;  // the threads do not sleep: they see it as soon as a CPU does
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

  // A thread that came to the end of so many waits, while the world made no progress, only waits; a timer of so many
  // ends rings in vain.
  static constexpr std::uint32_t kVainEnds = 3;

  const TimeKeeperParams params_;
  Programs& programs_;
  OutputRelay& output_;
  CallHandler* handler_ = nullptr;
  std::map<std::uint32_t, HostTurns> turns_of_;  // by host
  std::deque<std::unique_ptr<Process>> processes_;
  std::set<Thread*, Earlier> timed_;          // threads with `at`
  EventQueue<std::function<void()>> actions_{[this] { step(); }};
  struct PostedWrite {
    Process* process;
    abi::MmioWrite write;
  };
  EventQueue<PostedWrite> posted_{[this] { deliver_posted(); }};
  Alarm step_{[this] { step(); }};
  std::uint64_t next_ticket_ = 0;
  std::uint32_t next_shared_number_ = 1u << 30;  // of timers and watches of signals; above those of one process
  bool descriptors_changed_ = false;
  bool patient_ = false;
  bool ended_ = false;
  Thread* running_ = nullptr;
  std::uint64_t turns_ = 0;
  std::uint64_t progress_ = 0;
  Duration progressed_at_;
  Duration quiet_look_;                       // the last one
  std::size_t in_real_kernel_ = 0;            // threads
  // Numbers of a process's threads; never iterated.
  std::map<const Process*, std::size_t> prompt_;    // that wait for what lets them go on at once
  std::map<const Process*, std::size_t> watching_;  // that wait for what others may store
  std::map<std::uint32_t, std::size_t> watching_of_host_;  // the same, of all processes of a host
  std::set<std::string> disturbances_;
  // Real time: since when the simulation has waited for the clock to reach what is next to come.
  Duration idle_next_{-1};
  std::chrono::steady_clock::time_point idle_start_;
};

}  // namespace rnicsim::sim
