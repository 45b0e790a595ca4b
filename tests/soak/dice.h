// SPDX-License-Identifier: Apache-2.0
// Random numbers of the walks.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>

namespace rnicsim::testing {

// The same seed gives the same numbers on every machine.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  std::uint32_t below(std::uint64_t sides) { return sides == 0 ? 0 : std::uint32_t(engine_() % sides); }
  std::uint32_t between(std::uint32_t least, std::uint32_t most) { return least + below(most - least + 1); }
  bool once_in(std::uint32_t times) { return below(times) == 0; }
  std::uint64_t bits() { return engine_(); }
  template <class Container>
  auto& one_of(Container& from) {
    return from[below(from.size())];
  }

 private:
  std::mt19937_64 engine_;
};

// Number in an environment variable such as RNICSIM_WALK_SEED; `otherwise` if it is not set.
inline std::uint64_t number_of_environment(const char* variable, std::uint64_t otherwise) {
  const char* given = std::getenv(variable);
  return given != nullptr ? std::strtoull(given, nullptr, 10) : otherwise;
}

}  // namespace rnicsim::testing
