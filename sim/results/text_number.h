// SPDX-License-Identifier: Apache-2.0
// Fast appending of numbers to a text: a trace holds tens of millions of numbers.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>

#include "model/base/units.h"

namespace rnicsim::sim {

inline void append_digits(std::string& out, std::uint64_t value, int base = 10) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, value, base).ptr;
  out.append(digits, end);
}

// "1.234567": six decimals; the last is a picosecond.
inline void append_microseconds(std::string& out, Duration at) {
  constexpr std::int64_t kPsPerUs = 1'000'000;
  append_digits(out, std::uint64_t(at.ps / kPsPerUs));
  char digits[7] = {'.'};
  auto rest = at.ps % kPsPerUs;
  for (int i = 6; i > 0; --i, rest /= 10) digits[i] = char('0' + rest % 10);
  out.append(digits, sizeof digits);
}

}  // namespace rnicsim::sim
