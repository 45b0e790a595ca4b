// SPDX-License-Identifier: Apache-2.0
// Numbers of a trace file: unsigned LEB128. Seven bits in each byte, the least significant first; the top bit means
// that more bytes follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/trace_file/format.h"

namespace rnicsim::sim {

inline constexpr std::size_t kMostNumberBytes = 10;

// Returns the end of the number.
inline std::byte* put_number(std::byte* at, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) *at++ = std::byte(value | 0x80);
  *at++ = std::byte(value);
  return at;
}

inline void append_number(std::vector<std::byte>& out, std::uint64_t value) {
  std::byte bytes[kMostNumberBytes];
  out.insert(out.end(), bytes, put_number(bytes, value));
}

// TraceError: the number is cut short, or has more than 64 bits.
std::uint64_t next_long_number(std::span<const std::byte>& bytes);

// Removes a number from the front of `bytes`. Fast path: most numbers of a trace are one byte.
inline std::uint64_t next_number(std::span<const std::byte>& bytes) {
  if (bytes.empty() || std::to_integer<unsigned>(bytes.front()) >= 0x80) return next_long_number(bytes);
  const auto value = std::to_integer<std::uint64_t>(bytes.front());
  bytes = bytes.subspan(1);
  return value;
}

}  // namespace rnicsim::sim
