// Memory that is not there for the device, keys that mean none, and interrupts that reach nobody.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>

#include "model/driver_check/context.h"

namespace rnicsim::driver_check {

class MemoryChecks {
 public:
  explicit MemoryChecks(CheckContext& context) : context_(context) {}

  void aborted(Pasid pasid, std::uint64_t address, std::size_t bytes, bool write);
  // An access by a key.
  void refused(const nic::Refusal& refusal);

 private:
  CheckContext& context_;
};

class InterruptChecks {
 public:
  explicit InterruptChecks(CheckContext& context) : context_(context) {}

  void accessed(const nic::HostAccess& access);  // the driver writes a vector: it wants interrupts
  void raised(const nic::InterruptRaised& raised);
  void look_around();  // at what pends for long
  void finish();
  void was_reset();

 private:
  void forgotten(std::uint32_t vector, Duration since);

  CheckContext& context_;
  std::set<std::uint32_t> routed_;  // vectors
  std::map<std::uint32_t, Duration> pending_;
};

}  // namespace rnicsim::driver_check
