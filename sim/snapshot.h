// What a run looks like at one moment, for those who watch it from outside (`rnicsim top`).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/base/units.h"
#include "sim/results/counter_list.h"

namespace rnicsim::sim {

class System;

struct Snapshot {
  // An adapter or a switch. All of one kind have the same counters.
  struct Block {
    std::string label;  // as Adapter::label has it
    CounterList counters;
  };
  struct Program {
    std::string host;
    std::string name;                  // with its pid
    std::vector<std::string> threads;  // their states
  };
  std::uint32_t pid = 0;
  std::string command;       // line that started the run
  Duration time;             // simulated
  std::int64_t wall_ns = 0;  // of a clock that goes on steadily
  std::vector<Block> adapters;
  std::vector<Block> switches;
  std::vector<Program> programs;
  std::string work;  // what else is to tell of its progress
};

// All but the programs and the work.
Snapshot take_snapshot(const System& system);

// One line of JSON, and back; std::runtime_error: it is none of these, or of another version.
std::string snapshot_text(const Snapshot& snapshot);
Snapshot read_snapshot(const std::string& text);

}  // namespace rnicsim::sim
