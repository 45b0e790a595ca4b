// SystemC's time in our units. The kernel's resolution stays at its default, 1 ps.
#pragma once

#include <systemc>

#include "model/base/units.h"

namespace rnicsim {

// Of the context itself: sc_time_stamp() is a call into the library, and now() is asked for many times an event.
inline Duration now() {
  return {static_cast<std::int64_t>(sc_core::sc_get_curr_simcontext()->time_stamp().value())};
}

inline sc_core::sc_time to_sc_time(Duration value) {
  return sc_core::sc_time::from_value(static_cast<sc_dt::uint64>(value.ps));
}

}  // namespace rnicsim
