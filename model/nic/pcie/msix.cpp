// SPDX-License-Identifier: Apache-2.0
#include "model/nic/pcie/msix.h"

#include <algorithm>
#include <boost/endian/conversion.hpp>
#include <cstring>

namespace rnicsim::nic {

void MsixTable::reset() {
  std::ranges::fill(table_, 0);
  pending_ = 0;
  constexpr std::size_t kMaskByte = 12;
  for (std::size_t vector = 0; vector < count(); ++vector) table_[vector * kEntryBytes + kMaskByte] = 1;
}

bool MsixTable::read_table(std::uint32_t offset, std::span<std::byte> out) const {
  if (offset + out.size() > table_.size()) return false;
  std::memcpy(out.data(), table_.data() + offset, out.size());
  return true;
}

bool MsixTable::write_table(std::uint32_t offset, std::span<const std::byte> in) {
  if (offset + in.size() > table_.size()) return false;
  std::memcpy(table_.data() + offset, in.data(), in.size());
  return true;
}

bool MsixTable::read_pending(std::uint32_t offset, std::span<std::byte> out) const {
  if (offset + out.size() > sizeof(pending_)) return false;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = std::byte(pending_ >> 8 * (offset + i));
  return true;
}

std::optional<MsixMessage> MsixTable::raise(std::uint32_t vector, bool function_masked) {
  if (vector >= count()) return std::nullopt;
  if (function_masked || masked(vector)) {
    pending_ |= 1ull << vector;
    return std::nullopt;
  }
  return MsixMessage{word(vector, 0) | std::uint64_t{word(vector, 1)} << 32, word(vector, 2)};
}

std::vector<std::uint32_t> MsixTable::take_unmasked(bool function_masked) {
  std::vector<std::uint32_t> vectors;
  if (pending_ == 0 || function_masked) return vectors;
  for (std::uint32_t vector = 0; vector < count(); ++vector)
    if ((pending_ >> vector & 1) != 0 && !masked(vector)) {
      pending_ &= ~(1ull << vector);
      vectors.push_back(vector);
    }
  return vectors;
}

bool MsixTable::masked(std::uint32_t vector) const { return (word(vector, 3) & 1) != 0; }

std::uint32_t MsixTable::word(std::uint32_t vector, std::size_t index) const {
  return boost::endian::load_little_u32(table_.data() + vector * kEntryBytes + 4 * index);
}

}  // namespace rnicsim::nic
