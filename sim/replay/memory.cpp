// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/memory.h"

#include <algorithm>

namespace rnicsim::sim::replay {
namespace {

using Interval = boost::icl::interval<std::uint64_t>;

}  // namespace

Memory::Memory(std::span<const RemoteRegion> regions) {
  for (const auto& region : regions) {
    auto& ranges = regions_[region.rkey];
    if (region.length != 0 && region.address + region.length > region.address)
      ranges += Interval::right_open(region.address, region.address + region.length);
  }
}

Memory::Access Memory::check(std::uint32_t rkey, std::uint64_t address, std::uint64_t length) const {
  const auto ranges = regions_.find(rkey);
  if (ranges == regions_.end()) return Access::bad_key;
  if (address + length < address) return Access::bad_range;
  const bool inside = boost::icl::contains(ranges->second, Interval::right_open(address, address + length));
  return inside ? Access::ok : Access::bad_range;
}

void Memory::learn(std::uint32_t rkey, std::uint64_t address, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    auto& page = pages_[{rkey, address / kPage}];
    const auto offset = address % kPage;
    const auto part = bytes.first(std::min<std::size_t>(bytes.size(), kPage - offset));
    for (std::size_t i = 0; i < part.size(); ++i)
      if (!page.written[offset + i]) page.bytes[offset + i] = part[i];
    address += part.size();
    bytes = bytes.subspan(part.size());
  }
}

void Memory::write(std::uint32_t rkey, std::uint64_t address, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    auto& page = pages_[{rkey, address / kPage}];
    const auto offset = address % kPage;
    const auto part = bytes.first(std::min<std::size_t>(bytes.size(), kPage - offset));
    std::ranges::copy(part, page.bytes.begin() + static_cast<std::ptrdiff_t>(offset));
    for (std::size_t i = 0; i < part.size(); ++i) page.written[offset + i] = true;
    address += part.size();
    bytes = bytes.subspan(part.size());
  }
}

std::size_t Memory::read(std::uint32_t rkey, std::uint64_t address, std::span<std::byte> out) const {
  std::size_t written = 0;
  while (!out.empty()) {
    const auto page = pages_.find({rkey, address / kPage});
    const auto offset = address % kPage;
    const auto part = out.first(std::min<std::size_t>(out.size(), kPage - offset));
    if (page == pages_.end()) {
      std::ranges::fill(part, std::byte{0});
    } else {
      std::copy_n(page->second.bytes.begin() + static_cast<std::ptrdiff_t>(offset), part.size(), part.begin());
      for (std::size_t i = 0; i < part.size(); ++i) written += page->second.written[offset + i];
    }
    address += part.size();
    out = out.subspan(part.size());
  }
  return written;
}

}  // namespace rnicsim::sim::replay
