// SPDX-License-Identifier: Apache-2.0
// Expected state of a device memory: slots for outstanding work requests, a guarded area that must not change, and a
// counter word on which peers run atomics.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <set>

#include "model/base/kernel.h"
#include "model/base/units.h"

namespace rnicsim::testing {

class DeviceMemory {
 public:
  static constexpr std::uint32_t kSlot = 2048, kGuard = 256, kWord = 8;
  static constexpr std::uint32_t kPage = 4096;
  // Amount that one atomic adds. The repeated pattern shows a partial update.
  static constexpr std::uint64_t kUnit = 0x0001'0001'0001'0001;

  DeviceMemory(std::uint32_t owner, std::uint32_t context, std::uint32_t slots);
  std::uint32_t walker() const { return walker_; }
  std::uint32_t context() const { return context_; }
  std::uint32_t guard_at() const { return slots_ * kSlot; }
  std::uint32_t word_at() const { return guard_at() + kGuard; }
  std::uint32_t length() const { return word_at() + kWord; }
  std::uint32_t pages() const { return (length() + kPage - 1) / kPage; }
  std::uint8_t guard(std::uint32_t offset) const { return std::uint8_t(offset * 11 + walker_ + 1); }
  // A released slot is not reused while a late write may arrive.
  std::optional<std::uint32_t> take();
  bool has_slot() const;
  void give_back(std::uint32_t slot) { free_.push_back({slot, now() + Duration{200'000'000}}); }

  ibv_dm* dm = nullptr;
  bool alive = true;
  std::uint32_t users = 0;            // memory regions that use it
  std::set<std::uint32_t> unchecked;  // slots that the owner has not checked yet
  // counts in the word: `added` were posted (upper bound), `least` are certain (lower bound)
  std::uint64_t added = 0, least = 0;

 private:
  struct Free {
    std::uint32_t slot;
    Duration from;
  };
  bool may_be_taken(const Free& one) const { return one.from <= now() && !unchecked.contains(one.slot); }

  std::uint32_t walker_, context_, slots_;
  std::deque<Free> free_;
};

}  // namespace rnicsim::testing
