// SPDX-License-Identifier: Apache-2.0
// Checks of receives: the number that the doorbell records announce, and the chain of a shared receive queue.
#pragma once

#include <cstdint>
#include <span>

#include "model/driver_check/context.h"
#include "model/nic/queues/completion.h"

namespace rnicsim::driver_check {

class ReceiveChecks {
 public:
  explicit ReceiveChecks(CheckContext& context) : context_(context) {}

  // The device has read a doorbell record, or entries of a shared ring from `address` on.
  void record_read(std::uint32_t qpn, std::span<const std::byte> record);
  void shared_record_read(std::uint32_t srqn, std::span<const std::byte> record);
  void shared_entries_read(const MemoryRange& ring, std::uint64_t address, std::span<const std::byte> bytes);
  void taken(const nic::WqeTaken& taken);
  void completed(const nic::Cqe& cqe);

 private:
  void too_many(const Subject& subject, const char* whose, std::uint32_t number, std::span<const std::byte> record,
                std::uint16_t from, std::uint32_t most);

  CheckContext& context_;
};

}  // namespace rnicsim::driver_check
