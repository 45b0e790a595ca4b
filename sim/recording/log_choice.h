// SPDX-License-Identifier: Apache-2.0
// --log: selects the events to show, by level and block.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/trace_file/format.h"

namespace rnicsim::sim {

// Each level includes the levels before it.
enum class LogLevel {
  off,
  error,
  warn,   // default
  info,   // state changes of queue pairs and connections; dropped packets and refused requests
  debug,  // commands, doorbells, work requests, completions, events, messages of the connection manager
  trace,  // packets, frames, fetches, interrupts
};

// "info" (for all blocks) or "debug:doorbell".
struct LogChoice {
  LogLevel level = LogLevel::warn;
  std::string block;  // empty: all blocks
};

// Names of all blocks: "doorbell", "engine", ...
std::vector<std::string> log_blocks();
// ConfigError: the message names the possible values.
LogChoice parse_log_choice(std::string_view text);

// Level for the simulator's own messages: the last choice that is for all blocks.
LogLevel message_level(const std::vector<LogChoice>& choices);
// Indexed by EventKind.
std::vector<bool> shown_kinds(const std::vector<LogChoice>& choices);

}  // namespace rnicsim::sim
