// SPDX-License-Identifier: Apache-2.0
// Counters of the command unit.
#pragma once

#include "model/base/stats.h"

namespace rnicsim::nic {

struct CommandCounters {
  Counter commands = 0;
  Counter refused = 0;
  Counter bad_entries = 0;

  void describe(CounterVisitor& visit) const {
    visit.counter("commands", commands, "commands", "commands executed");
    visit.counter("refused", refused, "commands", "executed commands with a status other than ok");
    visit.counter("bad_entries", bad_entries, "doorbells",
                  "commands ignored: the entry cannot be read or does not belong to the device");
  }
};

}  // namespace rnicsim::nic
