// SPDX-License-Identifier: Apache-2.0
// Observers of a system that a command may attach: --log, --pcap, --record, --audit, --check, --waterfall, --perfetto.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/driver_check/check_params.h"
#include "sim/recording/log_choice.h"
#include "sim/recording/recorded_parts.h"
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
  std::string pcap;  // file names; empty: no file
  std::string record;
  RecordedParts recorded;
  bool audit = false;  // a recorded run is always audited
  bool check = false;  // check the drivers
  driver_check::CheckParams check_params;
  std::vector<LogChoice> log;
  FollowOptions follow;
};

class Observers {
 public:
  // Make the object before any process of the simulation starts. `header` is the record's header. ConfigError: a file
  // cannot be created.
  Observers(System& system, const ObserverOptions& options, const TraceHeader& header);
  ~Observers();

  // Waterfall to print; nullptr: not asked for.
  const Waterfall* waterfall() const { return follower_.shown(); }
  // Call at the end of the run, in each process. False: a counter disagrees with the trace points, or a driver made a
  // mistake; the message is printed already. ConfigError: a file could not be written. EngineMismatch: RTL and
  // reference model disagreed.
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
