// Which host memory the driver has lent for which contexts (map_icm).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>

#include "model/abi/context.h"

namespace rnicsim::nic {

class IcmMap {
 public:
  // False: empty, too large, or over a range that is mapped.
  bool map(abi::IcmTable table, std::uint32_t first, std::uint32_t count, std::uint64_t memory);
  bool unmap(abi::IcmTable table, std::uint32_t first, std::uint32_t count);  // exactly as it was mapped
  bool covers(abi::IcmTable table, std::uint32_t first, std::uint32_t count) const;
  std::optional<std::uint64_t> address(abi::IcmTable table, std::uint32_t index) const;
  void clear() { ranges_ = {}; }

 private:
  static constexpr std::size_t kTables = std::size(abi::kIcmEntryBytes);
  struct Range {
    std::uint32_t count;
    std::uint64_t memory;
  };
  std::array<std::map<std::uint32_t, Range>, kTables> ranges_;  // by first index
};

}  // namespace rnicsim::nic
