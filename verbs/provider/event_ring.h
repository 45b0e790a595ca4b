// SPDX-License-Identifier: Apache-2.0
// Driver side of an event queue, for the kernel agent. An MSI-X vector announces EQEs.
//
// Contract with the device: as for a CQ, the device writes the owner byte last (release) and the driver reads it first
// (acquire). rearm() gives the entries back and arms the vector; an EQE written in between raises the interrupt at
// once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "model/abi/queue.h"
#include "verbs/provider/dma.h"
#include "verbs/provider/uar.h"

namespace rnicsim::provider {

class EventRing {
 public:
  EventRing() = default;
  // `ring` must be zeroed: all entries then belong to the device, since positions count from first().
  EventRing(std::uint32_t eqn, std::uint8_t log_entries, DmaBuffer ring);
  // Positions start in the second lap of the ring, where owner bit 0 means "the device's": so a ring of untouched
  // pages needs no initialisation.
  static std::uint32_t first(std::uint8_t log_entries) { return 1u << log_entries; }

  std::uint32_t eqn() const { return eqn_; }
  std::optional<abi::Eqe> take();
  void rearm(Uar& uar) const;

 private:
  abi::Eqe& at(std::uint64_t position) const;

  DmaBuffer ring_;
  std::uint32_t eqn_ = 0;
  std::uint8_t log_entries_ = 0;
  std::uint64_t consumer_ = 0;  // never wraps
};

}  // namespace rnicsim::provider
