// SPDX-License-Identifier: Apache-2.0
// Checks of completion and event queues: entries that the device wrote against the driver's consumer counters.
#pragma once

#include <cstdint>
#include <span>

#include "model/driver_check/context.h"
#include "model/nic/queues/completion.h"
#include "model/nic/queues/event_writer.h"

namespace rnicsim::driver_check {

class CompletionChecks {
 public:
  explicit CompletionChecks(CheckContext& context) : context_(context) {}

  void written(const nic::CqeWritten& written);
  void event_written(const nic::EventTrace& event);
  // Bytes of a CQ's ring are about to land in host memory.
  void landing(const MemoryRange& ring, std::uint64_t address, std::size_t bytes);
  // A read of a CQ's doorbell record is about to push held CQEs into memory: the driver wrote the record before they
  // landed.
  void pushing(std::uint32_t cqn);
  // The device has read a CQ's doorbell record.
  void record_read(std::uint32_t cqn, std::span<const std::byte> record);

 private:
  void overran(std::uint32_t cqn);
  void poison(const CompletionRing& cq, std::uint32_t position);

  CheckContext& context_;
};

}  // namespace rnicsim::driver_check
