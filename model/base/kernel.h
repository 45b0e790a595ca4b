// SystemC's time in our units, and ways to run it. The kernel's resolution stays at its default, 1 ps.
#pragma once

#include <systemc>

#include "model/base/agenda.h"
#include "model/base/units.h"

namespace rnicsim {

inline Duration now() {
  const auto* agenda = Agenda::current();
  return agenda == nullptr ? Agenda::kernel_now() : agenda->now();
}

inline sc_core::sc_time to_sc_time(Duration value) {
  return sc_core::sc_time::from_value(static_cast<sc_dt::uint64>(value.ps));
}

// Threads that wait for the event go on at now(), or at that time.
void wake(sc_core::sc_event& event, Duration at = now());

// sc_start() until the time is `at`, or to the end; what modules have to do may be done ahead of the kernel's clock.
void run_until(Duration at);
void run_on();

}  // namespace rnicsim
