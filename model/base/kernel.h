// SystemC's time in the units of units.h, and ways to run the kernel. The kernel's resolution stays at its default, 1
// ps.
#pragma once

#include <systemc>

#include "model/base/agenda.h"
#include "model/base/units.h"

namespace rnicsim {

inline Duration now() { return Agenda::now(); }

inline sc_core::sc_time to_sc_time(Duration value) {
  return sc_core::sc_time::from_value(static_cast<sc_dt::uint64>(value.ps));
}

// --- Waiting in threads; they never call sc_core::wait().
void sleep_until(Duration at);  // returns at once if `at` is in the past
void sleep_on(const sc_core::sc_event& event);
// Threads that sleep on the event continue at `at`.
void wake(sc_core::sc_event& event, Duration at = now());

// The sleep of one thread, which end() may cut short. While the kernel has nothing else to do, the sleeping thread
// serves the agenda ahead of the kernel's clock. Threads with the same wake-up time continue in the order in which
// their Sleeps were made.
class Sleep {
 public:
  Sleep();
  void until(Duration at);         // returns at once if `at` is in the past
  void end(Duration at = now());   // no effect if the thread is not asleep

 private:
  friend class Agenda;

  sc_core::sc_event ended_;
  Alarm alarm_;                    // not armed while this thread serves the agenda
  bool asleep_ = false;
};

// sc_start() until the time is `at`; or until no event is left or the time is `limit`. Alarms may be served ahead of
// the kernel's clock.
void run_until(Duration at);
void run_on(Duration limit = Agenda::kNever);
// sc_pause(); no alarm is served ahead of the kernel before it.
void pause_run();

}  // namespace rnicsim
