// What is drawn from a generator of the standard library: alike everywhere, as the library's distributions are not.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>

namespace rnicsim {

// Even over 0 .. bound - 1.
inline std::uint64_t draw_below(std::mt19937_64& generator, std::uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Wide>(generator()) * bound >> 64);
}

// True as often as that.
inline bool draw(std::mt19937_64& generator, double probability) {
  const std::uint64_t number = generator();
  return probability >= 1 || number < static_cast<std::uint64_t>(std::ldexp(probability, 64));
}

}  // namespace rnicsim
