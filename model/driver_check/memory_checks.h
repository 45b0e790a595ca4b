// SPDX-License-Identifier: Apache-2.0
// Checks of DMA to memory that is not mapped, of unknown keys, and of lost interrupts.
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
  // The device refused an access by key.
  void refused(const nic::Refusal& refusal);

 private:
  CheckContext& context_;
};

class InterruptChecks {
 public:
  explicit InterruptChecks(CheckContext& context) : context_(context) {}

  void accessed(const nic::HostAccess& access);  // a write to an MSI-X vector: the driver uses that interrupt
  void raised(const nic::InterruptRaised& raised);
  void check_pending();  // reports interrupts that are pending for too long
  void finish();
  void was_reset();

 private:
  void forgotten(std::uint32_t vector, Duration since);

  CheckContext& context_;
  std::set<std::uint32_t> routed_;  // vectors that the driver has written
  std::map<std::uint32_t, Duration> pending_;
};

}  // namespace rnicsim::driver_check
