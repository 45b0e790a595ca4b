// What a command may look at a system with: --log, --pcap, --record, --audit, --check, --waterfall, --perfetto.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/driver_check/check_params.h"
#include "sim/recording/log_choice.h"
#include "sim/recording/trace_header.h"
#include "sim/waterfall/follower.h"

namespace rnicsim::sim {

class Capture;
class CounterAudit;
class DriverChecks;
class EventLog;
class Recording;
class System;

struct ObserverOptions {
  std::string pcap;  // files; empty: none
  std::string record;
  bool record_software = false;  // the software's side, too
  bool audit = false;  // a recorded run is audited, too
  bool check = false;  // the drivers
  driver_check::CheckParams check_params;
  std::vector<LogChoice> log;
  FollowOptions follow;
};

class Observers {
 public:
  // To be made before any process of the simulation. `header` is the record's. ConfigError: a file cannot be made.
  Observers(System& system, const ObserverOptions& options, const TraceHeader& header);
  ~Observers();

  // To be printed; nullptr: nobody asked.
  const Waterfall* waterfall() const { return follower_.shown(); }
  // The run has ended, in each process. False: a counter disagrees with the trace points, or a driver made a mistake,
  // and it was said which.
  // ConfigError: a file could not be written; EngineMismatch.
  bool finish();

 private:
  System& system_;
  // nullptr: not asked for.
  std::unique_ptr<Capture> capture_;
  std::unique_ptr<Recording> recording_;
  std::unique_ptr<CounterAudit> audit_;
  std::unique_ptr<EventLog> log_;
  std::unique_ptr<DriverChecks> checks_;
  Follower follower_;
};

}  // namespace rnicsim::sim
