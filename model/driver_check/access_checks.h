// SPDX-License-Identifier: Apache-2.0
// Checks of the CPU's accesses to configuration space and BAR0: width, direction, place, time, and polling.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "model/driver_check/context.h"

namespace rnicsim::driver_check {

class AccessChecks {
 public:
  explicit AccessChecks(CheckContext& context) : context_(context) {}

  void accessed(const nic::HostAccess& access);
  void answered(const nic::HostAnswer& answer);
  void refused(const nic::Refusal& refusal);
  void was_reset();
  std::optional<Duration> last_reset() const { return reset_; }
  bool restored() const { return restored_; }  // Command was written since the last reset

 private:
  void refused_place(std::uint64_t offset, bool write);
  void validate_queue_base(const nic::HostAccess& access);

  CheckContext& context_;
  std::optional<Duration> reset_;
  std::uint64_t resets_ = 0;
  bool restored_ = true;
  // The register read that the driver repeats.
  nic::HostAccess::Space space_{};
  std::uint64_t offset_ = 0;
  std::array<std::byte, 8> value_{};
  std::size_t size_ = 0;
  std::uint32_t repeated_ = 0;
  Duration since_;
};

}  // namespace rnicsim::driver_check
