// SPDX-License-Identifier: Apache-2.0
// Displaces a random entry; the seed determines the sequence.
#include <algorithm>
#include <random>

#include "model/base/policy.h"
#include "model/nic/contexts/replacement.h"

namespace rnicsim::nic {
namespace {

using Sequence = std::linear_congruential_engine<std::uint64_t, 6364136223846793005u, 1442695040888963407u, 0>;

class Random final : public Replacement {
 public:
  std::size_t way_for_another(Set set) override {
    const auto empty = std::ranges::find_if(set, &CacheWay::empty);
    if (empty != set.end()) return std::size_t(empty - set.begin());
    return (sequence_() >> 33) % set.size();  // the low bits of a linear congruential sequence have short
                                              // periods
  }
  void clear() override { sequence_.seed(seed_); }
  void seed(std::uint64_t seed) override { sequence_.seed(seed_ = seed); }

 private:
  std::uint64_t seed_ = Sequence::default_seed;
  Sequence sequence_;
};

const PolicyEntry<Replacement> kEntry{"random",
                                      []() -> std::unique_ptr<Replacement> { return std::make_unique<Random>(); }};

}  // namespace
}  // namespace rnicsim::nic
