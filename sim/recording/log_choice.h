// --log: which events are shown, by level and block.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/recording/format.h"

namespace rnicsim::sim {

// Each shows what those before it show, too.
enum class LogLevel {
  off,
  error,
  warn,   // what is said unless asked
  info,   // states of queue pairs and connections, what was dropped or refused
  debug,  // commands, doorbells, work requests, completions, events, messages of the connection manager
  trace,  // packets, frames, fetches, interrupts
};

// One of "info", for all blocks, or "debug:doorbell".
struct LogChoice {
  LogLevel level = LogLevel::warn;
  std::string block;  // empty: all
};

// "doorbell", "engine", ...
std::vector<std::string> log_blocks();
// ConfigError: what it should be.
LogChoice parse_log_choice(std::string_view text);

// Of the simulator's own messages; the last one for all blocks counts.
LogLevel message_level(const std::vector<LogChoice>& choices);
// By EventKind.
std::vector<bool> shown_kinds(const std::vector<LogChoice>& choices);

}  // namespace rnicsim::sim
