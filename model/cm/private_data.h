// SPDX-License-Identifier: Apache-2.0
// Private data of a message: the sender's bytes, padded with zeros.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace rnicsim::cm {

// False: too long for the field.
template <std::size_t Bytes>
bool assign(std::array<std::uint8_t, Bytes>& field, std::span<const std::uint8_t> given) {
  if (given.size() > Bytes) return false;
  std::fill(std::ranges::copy(given, field.begin()).out, field.end(), std::uint8_t{0});
  return true;
}

}  // namespace rnicsim::cm
