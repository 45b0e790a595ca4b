// SPDX-License-Identifier: Apache-2.0
#include "verbs/provider/event_ring.h"

namespace rnicsim::provider {

EventRing::EventRing(std::uint32_t eqn, std::uint8_t log_entries, DmaBuffer ring)
    : ring_(ring), eqn_(eqn), log_entries_(log_entries), consumer_(first(log_entries)) {}

std::optional<abi::Eqe> EventRing::take() {
  const std::uint8_t owner = observe(at(consumer_).owner);
  if ((owner & 1) != ((consumer_ >> log_entries_) & 1)) return std::nullopt;
  return at(consumer_++);
}

void EventRing::rearm(Uar& uar) const { uar.ring_eq(eqn_, std::uint32_t(consumer_ & 0xffffff)); }

abi::Eqe& EventRing::at(std::uint64_t position) const {
  return reinterpret_cast<abi::Eqe*>(ring_.memory)[position & ((1ull << log_entries_) - 1)];
}

}  // namespace rnicsim::provider
