// An event queue, of the kernel's agent: EQEs announced by an MSI-X vector.
//
// Contract with the device: as for a CQ, the owner byte is written last (release) and observed first (acquire). `rearm`
// gives the entries back and arms the vector; an EQE that came in between fires at once.
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
  // Of zeros, which are the device's if it begins at first().
  EventRing(std::uint32_t eqn, std::uint8_t log_entries, DmaBuffer ring);
  // The ring's second lap, in which an owner bit of 0 is the device's: so memory that nobody has touched stays that.
  static std::uint32_t first(std::uint8_t log_entries) { return 1u << log_entries; }

  std::uint32_t eqn() const { return eqn_; }
  std::optional<abi::Eqe> take();
  void rearm(Uar& uar) const;

 private:
  abi::Eqe& at(std::uint64_t position) const;

  DmaBuffer ring_;
  std::uint32_t eqn_ = 0;
  std::uint8_t log_entries_ = 0;
  std::uint64_t consumer_ = 0;  // counted for ever
};

}  // namespace rnicsim::provider
