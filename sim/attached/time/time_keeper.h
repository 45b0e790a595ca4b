// SPDX-License-Identifier: Apache-2.0
// Controls simulated time while real programs run. One thread of one program at a time has the turn: the thread with
// the earliest clock. The simulation advances up to that clock. docs/virtual-time.md has the rules, the states and the
// reasons.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/base/event_queue.h"
#include "sim/attached/output.h"
#include "sim/attached/processes/inherited_events.h"
#include "sim/attached/processes/process.h"
#include "sim/attached/processes/shared_numbers.h"
#include "sim/attached/processes/signal_watches.h"
#include "sim/attached/processes/signals.h"
#include "sim/attached/programs.h"
#include "sim/attached/time/address_waits.h"
#include "sim/attached/time/call_handler.h"
#include "sim/attached/time/descriptor_waits.h"
#include "sim/attached/time/host_turns.h"
#include "sim/attached/time/memory_waits.h"
#include "sim/attached/time/stops.h"
#include "sim/attached/time/thread.h"
#include "sim/attached/time/thread_scheduler.h"
#include "sim/attached/time/time_keeper_params.h"
#include "sim/attached/time/timers.h"

namespace rnicsim::sim {

class OutsideWorld;

class TimeKeeper : public sc_core::sc_module {
 public:
  TimeKeeper(sc_core::sc_module_name name, const TimeKeeperParams& params, Programs& programs, OutputRelay& output);
  void set_handler(CallHandler& handler);
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
  ThreadScheduler& threads() { return threads_; }
  const ThreadScheduler& threads() const { return threads_; }
  Signals& signals() { return signals_; }
  MemoryWaits& memory_waits() { return memory_waits_; }
  DescriptorWaits& descriptor_waits() { return descriptor_waits_; }
  HostTurns& turns_of(std::uint32_t host) { return turns_of_[host]; }
  Process& add(std::unique_ptr<Process> process, Duration start);

  // --- For the call handler.
  void start_thread(Process& process, std::uint32_t index, Duration start);
  void end_process(Process& process);  // the process is dead; its threads are removed
  // exec: removes state that the new image does not inherit.
  void replace_image(Process& process);
  // Gives the thread the turn and does not wait for its end.
  void release(Thread& thread);
  // Relays output of programs. True: there was some.
  bool relay_output() {
    const bool any = output_.drain();
    if (any) threads_.progressed();
    return any;
  }
  // For calls that wait in real time: relays output, serves visitors and signals. False: the run has ended.
  bool look_around();
  void end() { ended_ = true; }  // the run has ended
  bool is_patient() const { return patient_; }
  bool is_stopped(const Thread& thread) const { return programs_.is_stopped(thread); }

  // Reasons why the run is not reproducible; empty: it is.
  const std::set<std::string>& disturbances() const { return disturbances_; }
  void disturbed(std::string why) { disturbances_.insert(std::move(why)); }
  bool all_wait_for_descriptors() const;  // without a deadline, or in vain
  bool waits_for_real_kernel() const { return threads_.in_real_kernel() != 0; }
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
  // --- time_keeper.cpp
  void forget_threads(Process& process);
  void step();
  void step_simulated();
  void run(Thread& thread);
  Duration world_wanted(const Thread& thread, bool pending) const;
  bool bury_the_dead();
  void deliver_posted();
  void note_end_of_wait(Thread& thread);
  void look_when_quiet();
  void wait_refused(const Process& process);

  // --- time_calls.cpp. True: the call is answered.
  bool execute(Thread& thread);
  bool execute_by_handler(Thread& thread);
  bool new_thread(const Thread& maker, abi::ThreadSlot& slot);
  bool exit_thread(Thread& thread, abi::ThreadSlot& slot);
  void end_thread(Thread& thread);

  // --- turn.cpp
  void grant(Thread& thread);
  bool await_return(Thread& thread);
  Duration clock_limit(const Thread& thread) const;
  Duration quiet_until(const Thread& thread) const;
  void report_stuck(const Thread& thread, const std::string& why) const;
  void collect(Thread& thread);
  void take_posted(Thread& thread);
  void take_milestones(Thread& thread);
  bool poll_real_kernel();

  // --- real_time.cpp
  void step_real();
  bool serve_slots();
  bool await_input(Duration next);
  Duration time_to_next() const;

  const TimeKeeperParams params_;
  Programs& programs_;
  OutputRelay& output_;
  CallHandler* handler_ = nullptr;
  std::map<std::uint32_t, HostTurns> turns_of_;  // by host
  ThreadScheduler threads_{params_, [this] { step(); }};
  SharedNumbers numbers_;
  Stops stops_{threads_};
  SignalWatches signal_watches_{threads_, programs_, numbers_};
  Signals signals_{threads_, programs_, stops_, signal_watches_, params_.simulated};
  Timers timers_{threads_, signals_, numbers_};
  AddressWaits address_waits_{threads_};
  MemoryWaits memory_waits_{threads_};
  DescriptorWaits descriptor_waits_{threads_, params_.watched_end};
  struct PostedWrite {
    Process* process;
    abi::MmioWrite write;
  };
  EventQueue<PostedWrite> posted_{[this] { deliver_posted(); }};
  bool patient_ = false;
  bool ended_ = false;
  std::uint64_t turns_ = 0;
  Duration quiet_look_;  // when on_quiet was last called
  std::set<std::string> disturbances_;
  // Real time: when the simulation began to wait for the real clock, and the simulated time for which it waits.
  Duration idle_next_{-1};
  std::chrono::steady_clock::time_point idle_start_;
};

}  // namespace rnicsim::sim
