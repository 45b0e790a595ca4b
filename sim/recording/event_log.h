// --log: what happens in the devices, a line an event on stderr, for people.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/recording/format.h"
#include "sim/recording/recorder.h"
#include "sim/system.h"

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

class EventLog final : public EventSink {
 public:
  // To be made before the simulation starts; stays as long as it.
  EventLog(System& system, const std::vector<LogChoice>& choices);
  // Whether any event would be shown.
  static bool shows(const std::vector<LogChoice>& choices);

  void write(const TraceEvent& event) override;

 private:
  const std::vector<bool> shown_;  // by EventKind
  const std::vector<std::string> hosts_;
  Recorder recorder_;
};

}  // namespace rnicsim::sim
