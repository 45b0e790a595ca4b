// --check: the drivers of all NICs of a system are watched for mistakes; docs/driver-check.md.
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
  // To be made before any process of the simulation, and to stay as long as the system. Each finding is a line on
  // standard error, with the last accesses of the CPU behind it.
  DriverChecks(System& system, const driver_check::CheckParams& params);
  ~DriverChecks();

  // The run has ended: prints what each driver has touched of its device. False: there was a finding.
  bool finish();

 private:
  struct Watched;
  std::vector<std::unique_ptr<Watched>> watched_;
};

}  // namespace rnicsim::sim
