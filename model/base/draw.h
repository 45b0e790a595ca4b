// SPDX-License-Identifier: Apache-2.0
// Random draws from a generator of the standard library. The results are the same on every platform; those of the
// library's distributions are not.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>

namespace rnicsim {

// Uniform over 0 .. bound - 1.
inline std::uint64_t draw_below(std::mt19937_64& generator, std::uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Wide>(generator()) * bound >> 64);
}

// True with this probability.
inline bool draw(std::mt19937_64& generator, double probability) {
  const std::uint64_t number = generator();
  return probability >= 1 || number < static_cast<std::uint64_t>(std::ldexp(probability, 64));
}

// A generator with 8 bytes of state, for objects of which each port has one.
class SmallGenerator {
 public:
  // Each pair (seed, number) has a sequence of its own.
  SmallGenerator(std::uint64_t seed, std::uint64_t number) : state_(mixed(mixed(seed) + number)) {}

  // Uniform over 0 .. bound - 1, for a bound that is small beside 2^64.
  std::uint64_t draw_below(std::uint64_t bound) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>(static_cast<Wide>(next()) * bound >> 64);
  }
  bool draw(double probability) {
    return probability >= 1 || next() < static_cast<std::uint64_t>(std::ldexp(probability, 64));
  }

 private:
  // SplitMix64 (Steele, Lea and Flood 2014).
  static std::uint64_t mixed(std::uint64_t value) {
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
    value = (value ^ value >> 27) * 0x94d049bb133111eb;
    return value ^ value >> 31;
  }
  std::uint64_t next() { return mixed(state_ += 0x9e3779b97f4a7c15); }

  std::uint64_t state_;
};

}  // namespace rnicsim
