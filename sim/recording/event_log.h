// SPDX-License-Identifier: Apache-2.0
// --log: prints events of the devices on stderr, one line each, for human readers.
#pragma once

#include <string>
#include <vector>

#include "sim/recording/log_choice.h"
#include "sim/recording/recorder.h"
#include "sim/system.h"
#include "sim/trace_file/format.h"

namespace rnicsim::sim {

class EventLog final : public EventSink {
 public:
  // Make the object before the simulation starts; it must live as long as the simulation.
  EventLog(System& system, const std::vector<LogChoice>& choices);
  // True: at least one kind of event would be shown.
  static bool shows(const std::vector<LogChoice>& choices);

  void write(const TraceEvent& event) override;

 private:
  const std::vector<bool> shown_;  // by EventKind
  const std::vector<std::string> hosts_;
  Recorder recorder_;
};

}  // namespace rnicsim::sim
