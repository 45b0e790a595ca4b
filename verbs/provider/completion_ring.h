// A completion queue: the device writes CQEs, the driver takes them in order.
//
// Contract with the device: it writes an entry's owner byte last (release); the driver observes that byte (acquire)
// before it reads the rest. The consumer doorbell record is published (release) after the entries were read: the
// device may overwrite them from then on. The caller serialises all calls.
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
  // CQEs that can be taken.
  std::uint32_t unconsumed() const { return std::uint32_t(visible_end() - consumer_); }

  // Gives every entry of a ring to the device, before it hears of the ring.
  static void hand_over(std::uint8_t log_entries, DmaBuffer ring);
  // The device went on in another ring from `producer` on; the caller has waited until all before it can be seen. What
  // is not consumed comes along, each CQE at its position.
  bool sees_all_before(std::uint32_t producer) const { return unconsumed() >= ahead(producer); }
  void move_to(std::uint8_t log_entries, DmaBuffer ring, std::uint32_t producer);

  // The next CQE, consumed for the driver but not yet given back to the device.
  std::optional<abi::Cqe> take() {
    if (!ready(consumer_)) return std::nullopt;
    return at(consumer_++);
  }
  // Gives back what was taken.
  void release() {
    if (released_ == consumer_) return;
    publish_be(record_->consumer, consumer());
    released_ = consumer_;
  }
  // One past the last CQE taken, as the doorbell record counts.
  std::uint32_t consumer() const { return std::uint32_t(consumer_ & kRecordMask); }
  // One past the last CQE in the ring, consumed or not, as the doorbell record counts.
  std::uint32_t seen() const { return std::uint32_t(visible_end() & kRecordMask); }
  // Whether the ring has no CQE from index `one` on before index `other`.
  static bool is_behind(std::uint32_t one, std::uint32_t other) {
    return ((one - other) & kRecordMask) <= kRecordMask / 2;
  }
  // An event for CQEs later than those in the ring now: a CQE that slips in before the device is armed still fires.
  void arm(Uar& uar, std::uint32_t cqn, bool solicited_only) const { uar.arm_cq(cqn, solicited_only, seen()); }
  // Removes the CQEs for which `drop` holds, keeps the order of the others.
  void remove_if(const std::function<bool(const abi::Cqe&)>& drop);

 private:
  static constexpr std::uint32_t kRecordMask = 0xffffff;

  std::uint32_t ahead(std::uint32_t producer) const;
  abi::Cqe& at(std::uint64_t position) const {
    return reinterpret_cast<abi::Cqe*>(ring_.memory)[position & mask_];
  }
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
  std::uint64_t consumer_ = 0;  // counted for ever
  std::uint64_t released_ = 0;
};

}  // namespace rnicsim::provider
