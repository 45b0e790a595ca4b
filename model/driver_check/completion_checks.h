// Completion and event queues: what the device has written, and how much of it the driver says it took.
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
  // Bytes of a CQ's ring are about to land.
  void landing(const MemoryRange& ring, std::uint64_t address, std::size_t bytes);
  // A read of a CQ's record is about to push CQEs into memory: the driver wrote it without them.
  void pushing(std::uint32_t cqn);
  // The device has read a CQ's record.
  void record_read(std::uint32_t cqn, std::span<const std::byte> record);

 private:
  void overran(std::uint32_t cqn);
  void poison(const CompletionRing& cq, std::uint32_t position);

  CheckContext& context_;
};

}  // namespace rnicsim::driver_check
