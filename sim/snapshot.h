// SPDX-License-Identifier: Apache-2.0
// State of a run at one moment, for a viewer outside the process (`rnicsim top`).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/base/units.h"
#include "sim/results/counter_list.h"

namespace rnicsim::sim {

class System;

struct Snapshot {
  // Counters of an adapter or a switch. All adapters have the same list of counters, and so have all switches.
  struct Block {
    std::string label;  // an adapter's is Adapter::label()
    CounterList counters;
  };
  struct Program {
    std::string host;
    std::string name;                  // with its pid
    std::vector<std::string> threads;  // their states
  };
  std::uint32_t pid = 0;
  std::string command;       // command line that started the run
  Duration time;             // simulated
  std::int64_t wall_ns = 0;  // monotonic clock
  std::vector<Block> adapters;
  std::vector<Block> switches;
  std::vector<Program> programs;
  std::string work;  // further text about the run's progress
};

// Fills everything but `programs` and `work`.
Snapshot take_snapshot(const System& system);

// Snapshot as one line of JSON, and back. std::runtime_error: the text is no snapshot, or of another version.
std::string snapshot_text(const Snapshot& snapshot);
Snapshot read_snapshot(const std::string& text);

}  // namespace rnicsim::sim
