// SPDX-License-Identifier: Apache-2.0
// SystemC's time in the units of units.h, and ways to run the kernel. The kernel's resolution stays at its default, 1
// ps.
#pragma once

#include <systemc>

#include "model/base/agenda.h"
#include "model/base/units.h"

namespace rnicsim {

inline Duration now() { return Agenda::now(); }

// --- Waiting in threads; they never call sc_core::wait().
void sleep_until(Duration at);  // returns at once if `at` is in the past
void sleep_on(const sc_core::sc_event& event);
// Threads that sleep on the event continue at `at`.
void wake(sc_core::sc_event& event, Duration at = now());

// sc_start() until the time is `at`; or until no event is left or the time is `limit`. Alarms may be served ahead of
// the kernel's clock.
void run_until(Duration at);
void run_on(Duration limit = Agenda::kNever);
// sc_pause(). Until the pause, alarms are served only at the kernel's own time, not ahead of its clock.
void pause_run();

}  // namespace rnicsim
