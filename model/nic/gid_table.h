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

  bool set(std::uint32_t index, const GidEntry& entry) {
    if (index >= entries_.size()) return false;
    entries_[index] = entry;
    return true;
  }
  const GidEntry* find(std::uint32_t index) const {
    return index < entries_.size() && entries_[index].valid ? &entries_[index] : nullptr;
  }
  bool accepts(const roce::Gid& gid, const roce::MacAddress& mac) const {
    for (const auto& entry : entries_)
      if (entry.valid && entry.mac == mac && entry.gid == gid) return true;
    return false;
  }
  std::uint32_t size() const { return static_cast<std::uint32_t>(entries_.size()); }
  void clear() { entries_.assign(entries_.size(), {}); }

 private:
  std::vector<GidEntry> entries_;
};

}  // namespace rnicsim::nic
