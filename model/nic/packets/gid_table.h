// SPDX-License-Identifier: Apache-2.0
// The port's GIDs, each with the MAC address and the VLAN of its network interface.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "model/roce/types.h"

namespace rnicsim::nic {

struct GidEntry {
  roce::Gid gid{};
  roce::MacAddress mac{};
  bool valid = false;
  std::uint16_t vlan = roce::kNoVlan;
};

class GidTable {
 public:
  explicit GidTable(std::uint32_t size) : entries_(size) {}

  enum class Set : std::uint8_t { done, beyond_table, exists };
  // An address may be in the table only once, since its index identifies it.
  Set set(std::uint32_t index, const GidEntry& entry) {
    if (index >= entries_.size()) return Set::beyond_table;
    const auto at = index_of(entry.gid, entry.mac, entry.vlan);
    if (entry.valid && at && *at != index) return Set::exists;
    entries_[index] = entry;
    while (end_ > 0 && !entries_[end_ - 1].valid) --end_;
    if (entry.valid) end_ = std::max<std::size_t>(end_, index + 1);
    return Set::done;
  }
  const GidEntry* find(std::uint32_t index) const {
    return index < end_ && entries_[index].valid ? &entries_[index] : nullptr;
  }
  // `vlan`: VLAN of the frame's tag. 0 (a tag with a priority only) counts as no VLAN.
  std::optional<std::uint16_t> index_of(const roce::Gid& gid, const roce::MacAddress& mac,
                                        std::uint16_t vlan = roce::kNoVlan) const {
    if (vlan == 0) vlan = roce::kNoVlan;
    for (std::size_t index = 0; index < end_; ++index) {
      const auto& entry = entries_[index];
      const bool found = same(entry.mac, mac) && same(entry.gid, gid) && entry.vlan == vlan && entry.valid;
      if (found) return static_cast<std::uint16_t>(index);
    }
    return std::nullopt;
  }
  // True if an interface of this device has the MAC address.
  bool has(const roce::MacAddress& mac) const {
    return std::ranges::any_of(entries_, [&](const GidEntry& entry) { return entry.valid && entry.mac == mac; });
  }
  std::uint32_t size() const { return static_cast<std::uint32_t>(entries_.size()); }
  void clear() {
    entries_.assign(entries_.size(), {});
    end_ = 0;
  }

 private:
  // Compares by two words that cover the arrays (and may overlap): a comparison of std::array would be a call for each
  // packet.
  template <class Word, std::size_t size>
  static bool same_words(const std::array<std::uint8_t, size>& a, const std::array<std::uint8_t, size>& b) {
    const auto differs = [&](std::size_t at) {
      Word left, right;
      std::memcpy(&left, a.data() + at, sizeof(Word));
      std::memcpy(&right, b.data() + at, sizeof(Word));
      return left ^ right;
    };
    static_assert(size <= 2 * sizeof(Word));
    return (differs(0) | differs(size - sizeof(Word))) == 0;
  }
  static bool same(const roce::MacAddress& a, const roce::MacAddress& b) { return same_words<std::uint32_t>(a, b); }
  static bool same(const roce::Gid& a, const roce::Gid& b) { return same_words<std::uint64_t>(a, b); }

  std::vector<GidEntry> entries_;
  std::size_t end_ = 0;  // one past the last valid entry
};

}  // namespace rnicsim::nic
