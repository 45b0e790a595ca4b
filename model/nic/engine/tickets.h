// The tags that an engine gives out, and what the answer to each is for. An answer to a tag of before a reset, or one
// that comes twice, finds nothing.
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
    std::uint64_t epoch = 0;             // of the QP's life
    std::uint64_t argument = 0;
  };

  Tag issue(Qpn qpn, std::uint64_t epoch, Purpose purpose, std::uint64_t argument = 0) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(slots_.size()));
      slots_.emplace_back();
    }
    const auto number = free_.back();
    free_.pop_back();
    auto& slot = slots_[number];
    slot = {{purpose, qpn, epoch, argument}, slot.generation + 1, true};
    return Tag{slot.generation} << 32 | number;
  }

  // Until the next is issued. nullptr: nothing.
  const Ticket* redeem(Tag tag) {
    const auto number = static_cast<std::uint32_t>(tag);
    if (number >= slots_.size()) return nullptr;
    auto& slot = slots_[number];
    if (!slot.open || slot.generation != tag >> 32) return nullptr;
    slot.open = false;
    free_.push_back(number);
    return &slot.ticket;
  }

  void forget_all() {
    for (std::uint32_t number = 0; number < slots_.size(); ++number)
      if (std::exchange(slots_[number].open, false)) free_.push_back(number);
  }

 private:
  struct Slot {
    Ticket ticket;
    std::uint32_t generation = 0;
    bool open = false;
  };
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
};

}  // namespace rnicsim::nic
