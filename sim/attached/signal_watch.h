// What stands behind a descriptor of signals (signalfd): all processes that have it share the set, and each sees its
// own signals.
#pragma once

#include <memory>

#include "sim/attached/event_counter.h"
#include "sim/attached/pending_signals.h"

namespace rnicsim::sim {

struct SignalWatch {
  std::shared_ptr<SignalSet> set;
  EventCounter counter;  // the process's own: counts while one of the set waits
  bool shown = false;    // it does
};

}  // namespace rnicsim::sim
