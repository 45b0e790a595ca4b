// Watches a driver at the device's boundary and tells of its mistakes, each at its first wrong access:
// docs/driver-check.md.
// Nothing that the device does depends on it, and no time: a run with it is the same run, but for the modes of
// CheckParams.
//
//   driver_check::DriverCheck check(device.nic());
//   check.found = [](const driver_check::Finding& finding) { std::cerr << finding.line() << '\n'; };
//
// What it has to see of host memory beyond the device's own reads it asks for by the debug transport of the platform's
// `dma` target, or of HostMemory::look; without either those checks are silent, and burndown() says so.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/base/pcie.h"
#include "model/driver_check/check_params.h"
#include "model/driver_check/finding.h"
#include "model/nic/personality/driver_terms.h"
#include "model/nic/personality/personality.h"

namespace rnicsim::nic {
class Nic;
}

namespace rnicsim::driver_check {

class DriverCheck {
 public:
  // Before the driver's first access. It has to live as long as anything is done with the NIC.
  explicit DriverCheck(nic::Nic& nic, const CheckParams& params = {},
                       const nic::Personality& personality = nic::rnic_personality(),
                       const nic::DriverTerms& terms = nic::rnic_driver_terms());
  ~DriverCheck();

  // Called at each finding, at its time.
  void tell(std::function<void(const Finding&)> found);

  // --- The platform tells which memory it maps for the device, so that the check knows what was there once. PASID 0 is
  // the kernel's. Counted, byte by byte.
  void mapped(Pasid pasid, std::uint64_t address, std::uint64_t bytes);
  void unmapped(Pasid pasid, std::uint64_t address, std::uint64_t bytes);

  const std::vector<Finding>& findings() const;
  // The driver is done: what still waits is told. May be called again.
  void finish();
  // Registers, doorbells and commands that the driver touched, never touched, and asked for in vain: lines, each with
  // its end.
  std::string burndown() const;
  std::uint64_t accesses() const;  // of the CPU, so far

 private:
  class Watcher;
  const std::unique_ptr<Watcher> watcher_;
};

}  // namespace rnicsim::driver_check
