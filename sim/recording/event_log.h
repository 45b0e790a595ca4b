// --log: what happens in the devices, a line an event on stderr, for people.
#pragma once

#include <string>
#include <vector>

#include "sim/recording/format.h"
#include "sim/recording/log_choice.h"
#include "sim/recording/recorder.h"
#include "sim/system.h"

namespace rnicsim::sim {

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
