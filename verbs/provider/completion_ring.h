// SPDX-License-Identifier: Apache-2.0
// Driver side of a completion queue: the device writes CQEs, the driver takes them in order.
//
// Contract with the device: the device writes an entry's owner byte last (release); the driver reads that byte first
// (acquire). The driver publishes the consumer index in the doorbell record (release) after it has read the entries;
// from then on the device may overwrite them. The caller serialises all calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "model/abi/queue.h"
#include "verbs/provider/dma.h"
#include "verbs/provider/uar.h"

namespace rnicsim::provider {

inline abi::CqeOpcode opcode_of(const abi::Cqe& cqe) { return abi::CqeOpcode(cqe.opcode_owner >> 4); }
inline bool is_error(const abi::Cqe& cqe) {
  return opcode_of(cqe) == abi::CqeOpcode::requester_error || opcode_of(cqe) == abi::CqeOpcode::responder_error;
}
inline bool is_requester(const abi::Cqe& cqe) {
  return opcode_of(cqe) == abi::CqeOpcode::requester || opcode_of(cqe) == abi::CqeOpcode::requester_error;
}

class CompletionRing {
 public:
  CompletionRing() = default;
  // Gives every entry of the ring to the device.
  CompletionRing(std::uint8_t log_entries, DmaBuffer ring, abi::CqDoorbellRecord* record);

  std::uint32_t entries() const { return mask_ + 1; }
  // CQEs that take() can return now.
  std::uint32_t unconsumed() const { return std::uint32_t(visible_end() - consumer_); }

  // Marks every entry of a ring as owned by the device. Called before the device gets the ring.
  static void hand_over(std::uint8_t log_entries, DmaBuffer ring);
  // Resize: from `producer` on, the device writes to another ring. The caller first waits for sees_all_before().
  // move_to() copies the CQEs that are not consumed, each to its position.
  bool sees_all_before(std::uint32_t producer) const { return unconsumed() >= ahead(producer); }
  void move_to(std::uint8_t log_entries, DmaBuffer ring, std::uint32_t producer);

  // The next CQE. Its entry belongs to the driver until release().
  std::optional<abi::Cqe> take() {
    if (!ready(consumer_)) return std::nullopt;
    return at(consumer_++);
  }
  // Gives the taken entries back to the device.
  void release() {
    if (released_ == consumer_) return;
    publish_be(record_->consumer, consumer());
    released_ = consumer_;
  }
  // Index behind the last CQE taken, modulo 2^24 as in the doorbell record.
  std::uint32_t consumer() const { return std::uint32_t(consumer_ & kRecordMask); }
  // Index behind the last CQE in the ring, consumed or not, modulo 2^24.
  std::uint32_t seen() const { return std::uint32_t(visible_end() & kRecordMask); }
  // True: index `one` is `other` or later, modulo 2^24.
  static bool is_behind(std::uint32_t one, std::uint32_t other) {
    return ((one - other) & kRecordMask) <= kRecordMask / 2;
  }
  // Requests an event for CQEs later than those in the ring now. A CQE written before the device is armed raises it,
  // too.
  void arm(Uar& uar, std::uint32_t cqn, bool solicited_only) const { uar.arm_cq(cqn, solicited_only, seen()); }
  // Removes CQEs for which `drop` is true; the others keep their order.
  void remove_if(const std::function<bool(const abi::Cqe&)>& drop);

 private:
  static constexpr std::uint32_t kRecordMask = 0xffffff;

  std::uint32_t ahead(std::uint32_t producer) const;
  abi::Cqe& at(std::uint64_t position) const { return reinterpret_cast<abi::Cqe*>(ring_.memory)[position & mask_]; }
  bool ready(std::uint64_t position) const {
    const std::uint8_t opcode_owner = observe(at(position).opcode_owner);
    const auto opcode = abi::CqeOpcode(opcode_owner >> 4);
    return (opcode_owner & 1) == ((position >> log_entries_) & 1) && opcode != abi::CqeOpcode::invalid;
  }
  std::uint64_t visible_end() const;

  DmaBuffer ring_;
  abi::CqDoorbellRecord* record_ = nullptr;
  std::uint8_t log_entries_ = 0;
  std::uint32_t mask_ = 0;
  std::uint64_t consumer_ = 0;  // never wraps
  std::uint64_t released_ = 0;
};

}  // namespace rnicsim::provider
