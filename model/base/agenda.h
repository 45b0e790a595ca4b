// All that is to come in a simulation's modules, in one order: by time; at one time what was armed for it before, then
// what is armed meanwhile, round by round; and in a round by rank, the order in which the alarms were made. Threads
// that sleep (kernel.h) go on behind all that. So what is pending elsewhere never changes which of two goes first.
//
// The kernel owns time; the agenda is one process of it. Within a horizon that the caller of sc_start() grants
// (run_until(), run_on()), and as long as the kernel has nothing else to do before, it serves alarms ahead of the
// kernel's clock: TLM-2.0 calls it temporal decoupling. now() is the time of the alarm being served; who waits in the
// kernel is told by wake(). A thread that sleeps serves the agenda itself until its own turn, or until that of another
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

// Calls back once, at the time it was armed for.
class Alarm {
 public:
  using Action = Callback<void()>;

  explicit Alarm(Action action);
  ~Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  void arm(Duration at);        // absolute, not in the past; instead of what it was armed for
  void arm_by(Duration at);     // or sooner, if it was armed for that
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

  // Of the present simulation; there is one as long as there are alarms.
  static Agenda* current() { return current_; }

  // What it is now, where nobody can let the kernel go on: while alarms are served, and in a thread ahead of it.
  static Duration now() { return known_now_ != kNever ? known_now_ : ask_now(); }
  // When the next alarm is due, and the next thing in the kernel.
  Duration next_alarm() const;
  static Duration next_in_kernel();
  // The kernel gets to do what it has to do, at the latest after the alarm that is being served.
  void yield() { requests_.fetch_or(kYield, std::memory_order_relaxed); }
  // Of a signal handler: somebody wants to look. on_interrupt is called soon, between two alarms of the present
  // simulation; nobody's order changes by it.
  static void interrupt() {
    if (current_ != nullptr) current_->requests_.fetch_or(kInterrupt, std::memory_order_relaxed);
  }
  std::function<void()> on_interrupt;
  // The thread that served the agenda does so no more.
  void release();
  // Waits, in a thread of somebody else's, until no alarm is being served: see AgendaThread.
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
    std::uint64_t order;        // of one time: the round, then the rank
    std::uint32_t round() const { return static_cast<std::uint32_t>(order >> 32); }
    std::uint32_t rank() const { return static_cast<std::uint32_t>(order); }
    bool before(const Due& other) const { return at < other.at || (at == other.at && order < other.order); }
  };
  static constexpr Due kNothing{kNever, ~std::uint64_t{0}};
  static constexpr std::size_t kRoot = 1;
  static constexpr std::uint32_t kNowhere = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t kThreads = 1u << 31;  // the first round of threads

  enum class Process : std::uint8_t { method, thread };
  explicit Agenda(Process kind = Process::method);
  static Agenda& made(Process kind = Process::method);  // and kept for one more alarm
  void leave();
  std::uint32_t admit(Alarm& alarm);   // its rank
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
  static inline constinit Duration known_now_ = kNever;  // kNever: the kernel is to be asked

  std::vector<Due> heap_;
  std::size_t size_ = 0;                 // of it, from kRoot on; behind that lies kNothing
  std::vector<Alarm*> alarms_;           // by rank
  std::vector<std::uint32_t> places_;    // in the heap, by rank: moving in it touches no alarm
  sc_core::sc_event wake_{"agenda_wake"};
  sc_core::sc_event idle_{"agenda_idle"};  // of a thread
  sc_core::sc_process_handle process_;
  const bool may_wait_;         // a thread: what alarms call
  std::uint32_t users_ = 0;
  Duration ahead_;              // the time of the last alarm
  std::uint32_t round_ = 0;     // and its round
  Duration horizon_;
  Duration limit_;              // alarms before it are served now
  Sleep* server_ = nullptr;     // the thread that serves
  Due until_{};                 // its own turn
  Sleep* next_ = nullptr;       // the thread whose turn it is, until it runs
  bool held_ = false;           // a thread has served, and is ahead of the kernel: the process is not to be woken
  Duration wake_at_ = kNever;   // when it will be
  bool serving_ = false;
  bool root_free_ = false;      // what is served was there: the next that is armed takes its place
  static constexpr std::uint8_t kYield = 1, kInterrupt = 2;
  std::atomic<std::uint8_t> requests_{0};
  std::uint64_t served_ = 0;
};

inline bool Alarm::armed() const { return agenda_.places_[rank_] != Agenda::kNowhere; }

// The sleep of one thread, which somebody may end before its time. A thread that sleeps so goes ahead of the kernel's
// clock, with the agenda, while the kernel has nothing else to do. Of those that go on at one time the one whose Sleep
// was made first is the first.
class Sleep {
 public:
  Sleep();
  void until(Duration at);         // in the past: at once
  void end(Duration at = Agenda::now());   // if the thread is asleep

 private:
  friend class Agenda;

  sc_core::sc_event ended_;
  Alarm alarm_;                    // armed unless it serves the agenda itself
  bool asleep_ = false;
};

// Made before the modules of a simulation: their agenda is an SC_THREAD instead of an SC_METHOD, so that what an alarm
// calls may wait (a memory of somebody else's, in b_transport). All alarms wait with it; who calls into a module
// meanwhile, from another process, awaits the agenda's leisure first.
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
