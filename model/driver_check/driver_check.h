// SPDX-License-Identifier: Apache-2.0
// Watches a driver at the device's boundary and reports each mistake at its first wrong access: docs/driver-check.md.
// The check changes neither the behaviour nor the timing of the device, except for the modes of CheckParams.
//
//   driver_check::DriverCheck check(device.nic());
//   check.tell([](const driver_check::Finding& finding) { std::cerr << finding.line() << '\n'; });
//
// The check reads host memory beyond the device's own reads by the debug transport of the platform's `dma` target, or
// by HostMemory::peek. Without either, the checks that need this memory are silent, and burndown() says so.
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
  // Construct it before the driver's first access. It must live as long as the NIC is used.
  explicit DriverCheck(nic::Nic& nic, const CheckParams& params = {},
                       const nic::Personality& personality = nic::rnic_personality(),
                       const nic::DriverTerms& terms = nic::rnic_driver_terms());
  ~DriverCheck();

  // Sets the function that is called at each finding, at the simulated time of the finding.
  void tell(std::function<void(const Finding&)> found);

  // --- The platform reports the memory that it maps for the device, so that the check knows former mappings. PASID 0
  // is the kernel's. Each byte counts its mappings.
  void mapped(Pasid pasid, std::uint64_t address, std::uint64_t bytes);
  void unmapped(Pasid pasid, std::uint64_t address, std::uint64_t bytes);

  const std::vector<Finding>& findings() const;
  // The driver has ended: reports interrupts that are still pending. May be called again.
  void finish();
  // Lines, each with a newline: the registers, doorbells and commands that the driver used, never used, and used
  // without success.
  std::string burndown() const;
  std::uint64_t accesses() const;  // number of CPU accesses so far

 private:
  class Watcher;
  const std::unique_ptr<Watcher> watcher_;
};

}  // namespace rnicsim::driver_check
