// Integers stored big-endian, as every register and in-memory structure of the device is.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace rnicsim::abi {

template <std::unsigned_integral T>
class BigEndian {
 public:
  constexpr BigEndian() = default;
  constexpr BigEndian(T value) : stored_(swap(value)) {}
  constexpr operator T() const { return swap(stored_); }

 private:
  static_assert(std::endian::native == std::endian::little);
  static constexpr T swap(T value) {
    if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
    if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
    if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
  }
  T stored_ = 0;
};

using Be16 = BigEndian<std::uint16_t>;
using Be32 = BigEndian<std::uint32_t>;
using Be64 = BigEndian<std::uint64_t>;

// Writes a big-endian value to unaligned bytes and reads it back (wire headers, MMIO).
template <std::unsigned_integral T>
constexpr void store_be(std::byte* at, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) at[i] = std::byte(value >> (8 * (sizeof(T) - 1 - i)));
}
template <std::unsigned_integral T>
constexpr T load_be(const std::byte* at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value = T(value << 8 | T(at[i]));
  return value;
}

}  // namespace rnicsim::abi
