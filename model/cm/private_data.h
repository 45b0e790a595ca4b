// Private data of a message: what its sender gives, and zeros behind it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace rnicsim::cm {

// False: more than the message has room for.
template <std::size_t Bytes>
bool assign(std::array<std::uint8_t, Bytes>& field, std::span<const std::uint8_t> given) {
  if (given.size() > Bytes) return false;
  std::fill(std::ranges::copy(given, field.begin()).out, field.end(), std::uint8_t{0});
  return true;
}

}  // namespace rnicsim::cm
