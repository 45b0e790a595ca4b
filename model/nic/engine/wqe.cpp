// SPDX-License-Identifier: Apache-2.0
#include "model/nic/engine/wqe.h"

#include <algorithm>

namespace rnicsim::nic {

Regions slice(const Regions& regions, std::uint64_t offset, std::uint32_t length) {
  Regions part;
  for (const auto& region : regions) {
    if (length == 0) break;
    if (offset >= region.length) {
      offset -= region.length;
      continue;
    }
    const auto count = std::min<std::uint32_t>(length, region.length - static_cast<std::uint32_t>(offset));
    part.push_back({region.key, region.address + offset, count});
    length -= count;
    offset = 0;
  }
  return part;
}

std::uint32_t room_behind(const Regions& regions, std::uint64_t length) {
  for (const auto& region : regions) {
    if (length <= region.length) return static_cast<std::uint32_t>(region.length - length);
    length -= region.length;
  }
  return 0;
}

}  // namespace rnicsim::nic
