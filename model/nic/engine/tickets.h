// SPDX-License-Identifier: Apache-2.0
// Tags that an engine gives out, and the purpose of the answer to each. An answer to a tag from before a reset, or a
// second answer, finds no ticket.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "model/nic/seam/engine_trace.h"

namespace rnicsim::nic {

template <class Purpose>
class Tickets {
 public:
  struct Ticket {
    Purpose purpose{};
    Qpn qpn;
    std::uint64_t epoch = 0;  // epoch of the QP
    std::uint64_t argument = 0;
  };

  Tag issue(Qpn qpn, std::uint64_t epoch, Purpose purpose, std::uint64_t argument = 0) {
    if (free_ == kNone) grow();
    const auto number = free_;
    auto& slot = slots_[number];
    free_ = std::exchange(slot.next_free, kOpen);
    slot.ticket = {purpose, qpn, epoch, argument};
    return Tag{++slot.generation} << 32 | number;
  }

  // Valid until the next issue(). nullptr: no such ticket.
  const Ticket* redeem(Tag tag) {
    const auto number = static_cast<std::uint32_t>(tag);
    if (number >= slots_.size()) return nullptr;
    auto& slot = slots_[number];
    if (slot.next_free != kOpen || slot.generation != tag >> 32) return nullptr;
    release(number);
    return &slot.ticket;
  }

  void forget_all() {
    for (std::uint32_t number = 0; number < slots_.size(); ++number)
      if (slots_[number].next_free == kOpen) release(number);
  }

 private:
  static constexpr std::uint32_t kOpen = ~0u;  // in use
  static constexpr std::uint32_t kNone = kOpen - 1;

  struct Slot {
    Ticket ticket;
    std::uint32_t generation = 0;
    std::uint32_t next_free = kOpen;
  };

  void release(std::uint32_t number) {
    slots_[number].next_free = free_;
    free_ = number;
  }
  [[gnu::noinline]] void grow() {
    slots_.emplace_back();
    release(static_cast<std::uint32_t>(slots_.size() - 1));
  }

  std::vector<Slot> slots_;
  std::uint32_t free_ = kNone;  // the slot that was freed last
};

}  // namespace rnicsim::nic
