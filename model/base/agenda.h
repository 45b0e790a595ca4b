// SPDX-License-Identifier: Apache-2.0
// The pending alarms of all modules of a simulation, in one order: by time, then by round, then by rank. An alarm that
// is armed for the present time while this time is served falls into the next round. The rank is the order in which the
// alarms were made. Threads that sleep (kernel.h) continue behind all alarms of their time. So the order of two alarms
// never depends on other pending work.
//
// The SystemC kernel owns time; the agenda is one process of the kernel. The agenda serves alarms ahead of the kernel's
// clock (TLM-2.0: temporal decoupling) within a horizon that the caller of sc_start() grants (run_until(), run_on()),
// and until the kernel's next event. now() is the time of the alarm that is being served; wake() notifies processes
// that wait in the kernel. A thread that sleeps serves the agenda itself until its own turn or the turn of another
// thread, which then continues in its place.
// one, which it lets go on in its place.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <systemc>
#include <vector>

#include "model/base/inline_function.h"
#include "model/base/units.h"

namespace rnicsim {

class Agenda;
class Sleep;

inline sc_core::sc_time to_sc_time(Duration value) {
  return sc_core::sc_time::from_value(static_cast<sc_dt::uint64>(value.ps));
}

// Calls `action` once, at the time for which the alarm is armed.
class Alarm {
 public:
  using Action = Callback<void()>;

  explicit Alarm(Action action);
  ~Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  void arm(Duration at);     // absolute, not in the past; replaces an earlier time
  void arm_by(Duration at);  // keeps an earlier time if the alarm is armed for one
  void disarm();
  bool armed() const;

 private:
  friend class Agenda;
  friend class Sleep;
  Alarm(Action action, std::uint32_t first_round);

  Agenda& agenda_;
  Action action_;
  const std::uint32_t rank_;
  const std::uint32_t first_round_;
};

class Agenda {
 public:
  static constexpr Duration kNever{std::numeric_limits<std::int64_t>::max()};

  // The agenda of the present simulation; nullptr while the simulation has no alarm.
  static Agenda* current() { return current_; }

  // The present time; cached while alarms are served and in a thread ahead of the kernel, when the kernel cannot
  // advance.
  static Duration now() { return known_now_ != kNever ? known_now_ : ask_now(); }
  // Times of the next alarm and of the kernel's next event; kNever: none.
  Duration next_alarm() const;
  static Duration next_in_kernel();
  // Lets the kernel run its pending processes, at the latest after the alarm that is being served.
  void yield() { requests_.fetch_or(kYield, std::memory_order_relaxed); }
  // For a signal handler: on_interrupt is called soon, between two alarms of the present simulation. The order of
  // alarms does not change.
  static void interrupt() {
    if (current_ != nullptr) current_->requests_.fetch_or(kInterrupt, std::memory_order_relaxed);
  }
  std::function<void()> on_interrupt;
  // Ends the service of the agenda by a thread; the kernel's process takes over.
  void release();
  // Waits, in a process that is not the agenda's, until no alarm is being served: see AgendaThread.
  void await_idle();
  std::uint64_t served() const { return served_; }

  static Duration kernel_now() {
    return {static_cast<std::int64_t>(sc_core::sc_get_curr_simcontext()->time_stamp().value())};
  }

 private:
  friend class Alarm;
  friend class AgendaThread;
  friend class Sleep;
  friend void wake(sc_core::sc_event& event, Duration at);
  friend void run_until(Duration at);
  friend void run_on(Duration limit);
  struct Horizon;
  struct Due {
    Duration at;
    std::uint64_t order;  // order among alarms of one time: the round, then the rank
    std::uint32_t round() const { return static_cast<std::uint32_t>(order >> 32); }
    std::uint32_t rank() const { return static_cast<std::uint32_t>(order); }
    bool before(const Due& other) const { return at < other.at || (at == other.at && order < other.order); }
  };
  static constexpr Due kNothing{kNever, ~std::uint64_t{0}};
  static constexpr std::size_t kRoot = 1;
  static constexpr std::uint32_t kNowhere = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t kThreads = 1u << 31;  // the first round in which threads continue

  enum class Process : std::uint8_t { method, thread };
  explicit Agenda(Process kind = Process::method);
  static Agenda& made(Process kind = Process::method);  // creates the agenda for the first user; counts users
  void leave();
  std::uint32_t admit(Alarm& alarm);  // returns the alarm's rank
  static std::uint64_t order(std::uint32_t round, std::uint32_t rank) { return std::uint64_t{round} << 32 | rank; }
  Due due_of(const Alarm& alarm, Duration at) const;
  void arm(Alarm& alarm, const Due& due);
  void disarm(Alarm& alarm);
  void move(std::size_t place, Due due);
  void rise(std::size_t place, Due due);
  void sink(std::size_t place, Due due);
  void put(Due* hole, const Due& due);
  void remove(std::size_t place);
  [[gnu::noinline]] Duration limit() const;
  void serve_alarms();
  bool goes_on();
  [[gnu::noinline]] static Duration ask_now();
  void serve();
  void serve_for_ever();
  bool may_serve(Duration until);
  bool pass(Sleep& sleep, Duration until);
  void put_to_sleep(Sleep& sleep, Duration until);
  void end_sleep(Sleep& sleep, Duration at);
  void hand_over(Sleep& sleep);
  [[gnu::noinline]] void wake_at(Duration at);

  static inline Agenda* current_ = nullptr;
  static inline constinit Duration known_now_ = kNever;  // kNever: ask the kernel

  std::vector<Due> heap_;
  std::size_t size_ = 0;               // entries of the heap, from kRoot on; kNothing behind them
  std::vector<Alarm*> alarms_;         // by rank
  std::vector<std::uint32_t> places_;  // position in the heap, by rank; apart, so that a move touches no alarm
  sc_core::sc_event wake_{"agenda_wake"};
  sc_core::sc_event idle_{"agenda_idle"};  // notified when an agenda that is a thread has served
  sc_core::sc_process_handle process_;
  const bool may_wait_;  // true for a thread: the actions of alarms may call wait()
  std::uint32_t users_ = 0;
  Duration ahead_;           // time of the last alarm
  std::uint32_t round_ = 0;  // round of the last alarm
  Duration horizon_;
  Duration limit_;             // alarms before this time are served now
  Sleep* server_ = nullptr;    // the thread that serves
  Due until_{};                // the server's own turn
  Sleep* next_ = nullptr;      // the thread whose turn it is, until it runs
  bool held_ = false;          // a thread serves and is ahead of the kernel: the process is not woken
  Duration wake_at_ = kNever;  // time for which the process is notified; kNever: none
  bool serving_ = false;
  bool root_free_ = false;  // the alarm that is served was at the root: the next armed alarm takes its place
  static constexpr std::uint8_t kYield = 1, kInterrupt = 2;
  std::atomic<std::uint8_t> requests_{0};
  std::uint64_t served_ = 0;
};

inline bool Alarm::armed() const { return agenda_.places_[rank_] != Agenda::kNowhere; }

// The sleep of one thread, which end() may cut short. While the kernel has nothing else to do, the sleeping thread
// serves the agenda ahead of the kernel's clock. Threads with the same wake-up time continue in the order in which
// their Sleeps were made.
class Sleep {
 public:
  Sleep();
  void until(Duration at);                // returns at once if `at` is in the past
  void end(Duration at = Agenda::now());  // no effect if the thread is not asleep

 private:
  friend class Agenda;

  sc_core::sc_event ended_;
  Alarm alarm_;  // not armed while this thread serves the agenda
  bool asleep_ = false;
};

// Make an AgendaThread before the modules of a simulation: then the agenda is an SC_THREAD instead of an SC_METHOD, and
// the action of an alarm may wait (as b_transport of a foreign memory does). All other alarms wait meanwhile. Another
// process calls await_idle() before it calls into a module.
class AgendaThread {
 public:
  AgendaThread() : agenda_(Agenda::made(Agenda::Process::thread)) {}
  ~AgendaThread() { agenda_.leave(); }
  AgendaThread(const AgendaThread&) = delete;
  AgendaThread& operator=(const AgendaThread&) = delete;

 private:
  Agenda& agenda_;
};

}  // namespace rnicsim
