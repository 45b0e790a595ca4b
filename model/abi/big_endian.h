// SPDX-License-Identifier: Apache-2.0
// Big-endian integers: all registers and in-memory structures of the device are big-endian.
#pragma once

#include <boost/endian/conversion.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace rnicsim::abi {

// A field of a layout. Zero unless it is initialised, as reserved fields must be, and usable in constants;
// boost::endian::endian_arithmetic of Boost 1.74 is neither.
template <std::unsigned_integral T>
class BigEndian {
 public:
  constexpr BigEndian() = default;
  constexpr BigEndian(T value) : stored_(boost::endian::native_to_big(value)) {}
  constexpr operator T() const { return boost::endian::big_to_native(stored_); }

 private:
  T stored_ = 0;
};

using Be16 = BigEndian<std::uint16_t>;
using Be32 = BigEndian<std::uint32_t>;
using Be64 = BigEndian<std::uint64_t>;

// Stores and loads a big-endian value at unaligned bytes (wire headers, MMIO).
template <std::unsigned_integral T>
void store_be(std::byte* at, T value) {
  boost::endian::endian_store<T, sizeof(T), boost::endian::order::big>(reinterpret_cast<unsigned char*>(at), value);
}
template <std::unsigned_integral T>
T load_be(const std::byte* at) {
  return boost::endian::endian_load<T, sizeof(T), boost::endian::order::big>(
      reinterpret_cast<const unsigned char*>(at));
}

}  // namespace rnicsim::abi
