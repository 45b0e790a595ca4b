// The least recently used leaves: a set's order is that of use, with what is empty at its end.
#include <algorithm>

#include "model/base/policy.h"
#include "model/nic/contexts/replacement.h"

namespace rnicsim::nic {
namespace {

class Lru final : public Replacement {
 public:
  Lru() : Replacement(true) {}
  std::size_t way_for_another(Set set) override { return set.size() - 1; }
  void used(Set, std::size_t) override {}
  void emptied(Set set, std::size_t way) override {
    std::shift_left(set.begin() + std::ptrdiff_t(way), set.end(), 1);
    set.back() = kEmpty;
  }
  void clear() override {}
};

const PolicyEntry<Replacement> kEntry{"lru", []() -> std::unique_ptr<Replacement> { return std::make_unique<Lru>(); }};

}  // namespace
}  // namespace rnicsim::nic
