// SPDX-License-Identifier: Apache-2.0
// Displaces the least recently used entry.
#include <algorithm>

#include "model/base/policy.h"
#include "model/nic/contexts/replacement.h"

namespace rnicsim::nic {
namespace {

class Lru final : public Replacement {
 public:
  // An empty way has `used` 0.
  std::size_t way_for_another(Set set) override {
    return std::size_t(std::ranges::min_element(set, {}, &CacheWay::used) - set.begin());
  }
};

const PolicyEntry<Replacement> kEntry{"lru", []() -> std::unique_ptr<Replacement> { return std::make_unique<Lru>(); }};

}  // namespace
}  // namespace rnicsim::nic
