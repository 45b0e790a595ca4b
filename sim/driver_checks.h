// SPDX-License-Identifier: Apache-2.0
// --check: watches the drivers of all NICs of a system for mistakes; docs/driver-check.md.
#pragma once

#include <memory>
#include <vector>

namespace rnicsim::driver_check {
struct CheckParams;
}

namespace rnicsim::sim {

class System;

class DriverChecks {
 public:
  // Make the object before any process of the simulation starts; it must live as long as the system. Each finding is
  // printed as a line on standard error, followed by the CPU's last accesses.
  DriverChecks(System& system, const driver_check::CheckParams& params);
  ~DriverChecks();

  // Call at the end of the run. Prints which parts of the device each driver has used. False: there was a finding.
  bool finish();

 private:
  struct Watched;
  std::vector<std::unique_ptr<Watched>> watched_;
};

}  // namespace rnicsim::sim
