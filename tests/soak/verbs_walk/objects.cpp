// SPDX-License-Identifier: Apache-2.0
#include "tests/soak/verbs_walk/objects.h"

#include <algorithm>
#include <cstring>

namespace rnicsim::testing {

Arena::Arena(std::uint32_t owner) : owner_(owner), bytes_(kBytes) {
  for (std::uint32_t cell = 0; cell < kCells; ++cell) free_.push_back(cell * kCell);
  for (std::uint32_t offset = kCell * kCells; offset < kBytes; ++offset) bytes_[offset] = guard(offset);
}

std::optional<std::uint32_t> Arena::take() {
  if (free_.empty()) return std::nullopt;
  const auto offset = free_.front();
  free_.pop_front();
  return offset;
}

bool Arena::guard_is_whole() const {
  for (std::uint32_t offset = kCell * kCells; offset < kBytes; ++offset)
    if (bytes_[offset] != guard(offset)) return false;
  return true;
}

void fill_pattern(std::uint8_t* to, std::uint32_t length, std::uint64_t id) {
  for (std::uint32_t i = 0; i < length; ++i) to[i] = std::uint8_t(id * 31 + i * 5 + i / 256);
  if (length >= sizeof id) std::memcpy(to, &id, sizeof id);
}

bool has_pattern(const std::uint8_t* at, std::uint32_t length, std::uint64_t id) {
  std::vector<std::uint8_t> wanted(length);
  fill_pattern(wanted.data(), length, id);
  return std::memcmp(at, wanted.data(), length) == 0;
}

bool is_zero(const std::uint8_t* at, std::uint32_t length) {
  return std::all_of(at, at + length, [](std::uint8_t byte) { return byte == 0; });
}

}  // namespace rnicsim::testing
