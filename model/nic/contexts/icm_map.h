// SPDX-License-Identifier: Apache-2.0
// The host memory that the driver has lent for contexts (map_icm).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>

#include "model/nic/personality/values.h"

namespace rnicsim::nic {

class IcmMap {
 public:
  using EntryBytes = std::array<std::uint32_t, kIcmTables>;
  explicit IcmMap(const EntryBytes& entry_bytes) : entry_bytes_(entry_bytes) {}

  // False: empty, too large, or overlaps a mapped range.
  bool map(IcmTable table, std::uint32_t first, std::uint32_t count, std::uint64_t memory);
  bool unmap(IcmTable table, std::uint32_t first, std::uint32_t count);  // false: not the exact range of a map()
  bool covers(IcmTable table, std::uint32_t first, std::uint32_t count) const;
  std::optional<std::uint64_t> address(IcmTable table, std::uint32_t index) const;
  void clear() { ranges_ = {}; }

 private:
  static constexpr std::size_t kTables = kIcmTables;
  struct Range {
    std::uint32_t count;
    std::uint64_t memory;
  };
  const EntryBytes entry_bytes_;
  std::array<std::map<std::uint32_t, Range>, kTables> ranges_;  // by first index
};

}  // namespace rnicsim::nic
