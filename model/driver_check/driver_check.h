// Checks a driver at the device's boundary and reports its mistakes, each at its first wrong access:
// docs/driver-check.md. The check does not influence the device and takes no simulated time, except for the modes of
// CheckParams.
//
//   driver_check::DriverCheck check(device.nic());
//   check.found = [](const driver_check::Finding& finding) { std::cerr << finding.line() << '\n'; };
//
// Host memory beyond the device's own reads is read by the debug transport of the platform's `dma` target, or by
// HostMemory::look. Without either, the checks that need this memory do nothing, and burndown() says so.
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
  // Make the object before the driver's first access; it must live as long as the NIC is used.
  explicit DriverCheck(nic::Nic& nic, const CheckParams& params = {},
                       const nic::Personality& personality = nic::rnic_personality(),
                       const nic::DriverTerms& terms = nic::rnic_driver_terms());
  ~DriverCheck();

  // Sets the function that is called for each finding, at the time of the finding.
  void tell(std::function<void(const Finding&)> found);

  // --- The platform reports memory that it maps for the device, so that the check can tell unmapped memory from memory
  // never mapped. PASID 0 is the kernel's. Mappings are counted by byte and may overlap.
  void mapped(Pasid pasid, std::uint64_t address, std::uint64_t bytes);
  void unmapped(Pasid pasid, std::uint64_t address, std::uint64_t bytes);

  const std::vector<Finding>& findings() const;
  // The driver has ended: reports pending findings. May be called several times.
  void finish();
  // Registers, doorbells and commands that the driver used, never used, or requested without success. Text of several
  // lines, each with a newline.
  std::string burndown() const;
  std::uint64_t accesses() const;  // number of the CPU's accesses so far

 private:
  class Watcher;
  const std::unique_ptr<Watcher> watcher_;
};

}  // namespace rnicsim::driver_check
