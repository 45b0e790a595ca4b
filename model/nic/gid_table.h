// The port's GIDs, each with the MAC of its network interface.
#pragma once

#include <optional>
#include <vector>

#include "model/roce/types.h"

namespace rnicsim::nic {

struct GidEntry {
  roce::Gid gid{};
  roce::MacAddress mac{};
  bool valid = false;
};

class GidTable {
 public:
  explicit GidTable(std::uint32_t size) : entries_(size) {}

  enum class Set : std::uint8_t { done, beyond_table, exists };
  // An address stands in the table once: its index says which of them a frame came to.
  Set set(std::uint32_t index, const GidEntry& entry) {
    if (index >= entries_.size()) return Set::beyond_table;
    const auto at = index_of(entry.gid, entry.mac);
    if (entry.valid && at && *at != index) return Set::exists;
    entries_[index] = entry;
    return Set::done;
  }
  const GidEntry* find(std::uint32_t index) const {
    return index < entries_.size() && entries_[index].valid ? &entries_[index] : nullptr;
  }
  std::optional<std::uint16_t> index_of(const roce::Gid& gid, const roce::MacAddress& mac) const {
    for (std::size_t index = 0; index < entries_.size(); ++index) {
      const auto& entry = entries_[index];
      if (entry.valid && entry.mac == mac && entry.gid == gid) return static_cast<std::uint16_t>(index);
    }
    return std::nullopt;
  }
  std::uint32_t size() const { return static_cast<std::uint32_t>(entries_.size()); }
  void clear() { entries_.assign(entries_.size(), {}); }

 private:
  std::vector<GidEntry> entries_;
};

}  // namespace rnicsim::nic
