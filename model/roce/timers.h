// SPDX-License-Identifier: Apache-2.0
// The times of timer codes of a queue pair.
#pragma once

#include <cstdint>

#include "model/base/units.h"

namespace rnicsim::roce {

constexpr std::uint8_t kMostTimerCode = 31;

// The local ACK timeout: 4.096 us x 2^code (IBTA vol 1, 9.7.6.1.3).
constexpr Duration ack_timeout(std::uint8_t code) {
  return Duration{4'096'000} * (std::int64_t{1} << (code & kMostTimerCode));
}

// The RNR timer (IBTA vol 1, table 45).
constexpr Duration rnr_delay(std::uint8_t code) {
  constexpr Duration kUnit{10'000'000};
  constexpr std::uint16_t kUnits[] = {0,    1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
                                      48,   64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
                                      2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
  constexpr std::int64_t kUnitsOfZero = 65536;
  const auto index = code & kMostTimerCode;
  return kUnit * (index == 0 ? kUnitsOfZero : kUnits[index]);
}

}  // namespace rnicsim::roce
