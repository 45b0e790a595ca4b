// SystemC's time in our units, and ways to run it. The kernel's resolution stays at its default, 1 ps.
#pragma once

#include <systemc>

#include "model/base/agenda.h"
#include "model/base/units.h"

namespace rnicsim {

inline Duration now() { return Agenda::now(); }

// --- What threads do, and no sc_core::wait().
void sleep_until(Duration at);  // in the past: at once
void sleep_on(const sc_core::sc_event& event);
// Threads that sleep on the event go on at now(), or at that time.
void wake(sc_core::sc_event& event, Duration at = now());

// sc_start() until the time is `at`, or to the end, or until `limit`; what modules have to do may be done ahead of the
// kernel's clock.
void run_until(Duration at);
void run_on(Duration limit = Agenda::kNever);
// sc_pause(), and nobody goes ahead before.
void pause_run();

}  // namespace rnicsim
