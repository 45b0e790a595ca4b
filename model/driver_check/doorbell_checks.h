// SPDX-License-Identifier: Apache-2.0
// Checks of doorbells: object, UAR page, distance, and whether the announced WQEs are in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/driver_check/context.h"
#include "model/nic/queues/doorbell.h"
#include "model/nic/seam/engine_trace.h"

namespace rnicsim::driver_check {

class DoorbellChecks {
 public:
  explicit DoorbellChecks(CheckContext& context) : context_(context) {}

  void rung(const nic::DoorbellRung& rung);
  void armed(const nic::CqArmed& arm);
  void consumed(const nic::EqConsumed& eq);
  void refused(const nic::Refusal& refusal);
  void ignored(const nic::DoorbellIgnored& ignored);

 private:
  void no_object(ObjectKind kind, const nic::Refusal& refusal);
  // Decodes the last written doorbell in little-endian order.
  nic::DoorbellWrite swapped_doorbell() const;
  std::optional<std::uint32_t> swapped_position() const;
  std::uint32_t last_in_page() const;
  void validate_announced(std::uint32_t qpn, QueuePair& qp, std::uint16_t producer);
  // Returns the number of blocks of the WQE; 0: the WQE is not sound, so the place of the next WQE is unknown.
  std::uint16_t validate_wqe(std::uint32_t qpn, const QueuePair& qp, std::uint16_t position);

  CheckContext& context_;
};

}  // namespace rnicsim::driver_check
