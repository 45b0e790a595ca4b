// SystemC's time in our units, and ways to run it. The kernel's resolution stays at its default, 1 ps.
#pragma once

#include <systemc>

#include "model/base/agenda.h"
#include "model/base/units.h"

namespace rnicsim {

inline Duration now() { return Agenda::now(); }

inline sc_core::sc_time to_sc_time(Duration value) {
  return sc_core::sc_time::from_value(static_cast<sc_dt::uint64>(value.ps));
}

// --- What threads do, and no sc_core::wait().
void sleep_until(Duration at);  // in the past: at once
void sleep_on(const sc_core::sc_event& event);
// Threads that sleep on the event go on at now(), or at that time.
void wake(sc_core::sc_event& event, Duration at = now());

// The sleep of one thread, which somebody may end before its time. A thread that sleeps so goes ahead of the kernel's
// clock, with the agenda, while the kernel has nothing else to do. Of those that go on at one time the one whose Sleep
// was made first is the first.
class Sleep {
 public:
  Sleep();
  void until(Duration at);         // in the past: at once
  void end(Duration at = now());   // if the thread is asleep

 private:
  friend class Agenda;

  sc_core::sc_event ended_;
  Alarm alarm_;                    // armed unless it serves the agenda itself
  bool asleep_ = false;
};

// sc_start() until the time is `at`, or to the end, or until `limit`; what modules have to do may be done ahead of the
// kernel's clock.
void run_until(Duration at);
void run_on(Duration limit = Agenda::kNever);
// sc_pause(), and nobody goes ahead before.
void pause_run();

}  // namespace rnicsim
