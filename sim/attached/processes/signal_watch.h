// SPDX-License-Identifier: Apache-2.0
// State behind a signalfd. All processes that have the descriptor share the set, and each process sees its own
// signals.
#pragma once

#include <memory>

#include "sim/attached/processes/pending_signals.h"
#include "sim/attached/time/event_counter.h"

namespace rnicsim::sim {

struct SignalWatch {
  std::shared_ptr<SignalSet> set;
  EventCounter counter;  // this process's; not zero while a signal of the set is pending
  bool shown = false;    // the counter is not zero
};

}  // namespace rnicsim::sim
