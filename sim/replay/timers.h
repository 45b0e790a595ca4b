// SPDX-License-Identifier: Apache-2.0
// The transport's timers by IBTA, for the comparison. A separate table, because the NIC's own table is under test.
#pragma once

#include <array>
#include <cstdint>

#include "model/base/units.h"

namespace rnicsim::sim::replay {

inline constexpr std::uint8_t kMostTimeout = 31;

// IBTA vol 1, 9.7.6.1.3: 4.096 us x 2^code.
constexpr Duration least_ack_timeout(std::uint8_t code) {
  return Duration{4'096'000} * (std::int64_t{1} << (code & kMostTimeout));
}

// RNR NAK timer codes, IBTA vol 1, table 45, in units of 10 us.
constexpr Duration least_rnr_wait(std::uint8_t code) {
  constexpr std::array<std::uint32_t, 32> kTable{65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
                                                 48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
                                                 2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
  return Duration{10'000'000} * kTable[code & 31u];
}

}  // namespace rnicsim::sim::replay
