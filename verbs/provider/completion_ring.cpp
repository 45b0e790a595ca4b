// SPDX-License-Identifier: Apache-2.0
#include "verbs/provider/completion_ring.h"

namespace rnicsim::provider {

CompletionRing::CompletionRing(std::uint8_t log_entries, DmaBuffer ring, abi::CqDoorbellRecord* record)
    : ring_(ring), record_(record), log_entries_(log_entries), mask_((1u << log_entries) - 1) {
  hand_over(log_entries, ring);
  publish_be(record_->consumer, 0u);
}

void CompletionRing::hand_over(std::uint8_t log_entries, DmaBuffer ring) {
  auto* entries = reinterpret_cast<abi::Cqe*>(ring.memory);
  for (std::uint32_t i = 0; i < 1u << log_entries; ++i) publish(entries[i].opcode_owner, abi::Cqe::kInitialOwner);
}

void CompletionRing::move_to(std::uint8_t log_entries, DmaBuffer ring, std::uint32_t producer) {
  const std::uint32_t mask = (1u << log_entries) - 1;
  for (std::uint64_t position = consumer_, left = ahead(producer); left > 0; ++position, --left) {
    abi::Cqe& target = reinterpret_cast<abi::Cqe*>(ring.memory)[position & mask];
    target = at(position);
    target.opcode_owner = std::uint8_t((target.opcode_owner & ~1) | (position >> log_entries & 1));
  }
  ring_ = ring;
  log_entries_ = log_entries;
  mask_ = mask;
}

// Number of CQEs from the consumer index to `producer`.
std::uint32_t CompletionRing::ahead(std::uint32_t producer) const {
  return std::uint32_t(producer - consumer_) & kRecordMask;
}

void CompletionRing::remove_if(const std::function<bool(const abi::Cqe&)>& drop) {
  // From the newest to the oldest CQE: kept CQEs move up over dropped ones. The owner bit belongs to the position.
  const std::uint64_t end = visible_end();
  std::uint64_t dropped = 0;
  for (std::uint64_t position = end; position-- > consumer_;) {
    const abi::Cqe& cqe = at(position);
    if (drop(cqe)) {
      ++dropped;
    } else if (dropped > 0) {
      abi::Cqe& target = at(position + dropped);
      const std::uint8_t owner = target.opcode_owner & 1;
      target = cqe;
      target.opcode_owner = std::uint8_t((cqe.opcode_owner & ~1) | owner);
    }
  }
  consumer_ += dropped;
  release();
}

std::uint64_t CompletionRing::visible_end() const {
  std::uint64_t end = consumer_;
  while (end - consumer_ <= mask_ && ready(end)) ++end;
  return end;
}

}  // namespace rnicsim::provider
