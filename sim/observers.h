// What a command may look at a system with: --log, --pcap, --record, --audit, --waterfall, --perfetto.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/recording/capture.h"
#include "sim/recording/counter_audit.h"
#include "sim/recording/event_log.h"
#include "sim/recording/recorder.h"
#include "sim/system.h"
#include "sim/waterfall/follower.h"

namespace rnicsim::sim {

struct ObserverOptions {
  std::string pcap;  // files; empty: none
  std::string record;
  bool audit = false;  // a recorded run is audited, too
  std::vector<LogChoice> log;
  FollowOptions follow;
};

class Observers {
 public:
  // To be made before any process of the simulation. `header` is the record's. ConfigError: a file cannot be made.
  Observers(System& system, const ObserverOptions& options, const TraceHeader& header);

  // To be printed; nullptr: nobody asked.
  const Waterfall* waterfall() const { return follower_.shown(); }
  // The run has ended, in each process. False: a counter disagrees with the trace points, and it was said which.
  // ConfigError: a file could not be written; EngineMismatch.
  bool finish();

 private:
  System& system_;
  std::optional<Capture> capture_;
  std::optional<Recording> recording_;
  std::optional<CounterAudit> audit_;
  std::optional<EventLog> log_;
  Follower follower_;
};

}  // namespace rnicsim::sim
