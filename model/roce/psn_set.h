// SPDX-License-Identifier: Apache-2.0
// A set of PSNs that are not far after its first one; the first one only moves forward.
#pragma once

#include <cstddef>

#include "model/base/fifo.h"
#include "model/roce/types.h"

namespace rnicsim::roce {

class PsnSet {
 public:
  bool empty() const { return in_.empty(); }  // false for some empty sets
  bool contains(Psn psn) const {
    const auto ahead = distance(first_, psn);
    return ahead >= 0 && static_cast<std::size_t>(ahead) < in_.size() && in_[static_cast<std::size_t>(ahead)];
  }
  // PSNs before the one of move_to() are ignored.
  void insert(Psn psn) {
    const auto ahead = distance(first_, psn);
    if (ahead < 0) return;
    while (in_.size() <= static_cast<std::size_t>(ahead)) in_.push_back(false);
    in_[static_cast<std::size_t>(ahead)] = true;
  }
  void erase(Psn psn) {
    if (contains(psn)) in_[static_cast<std::size_t>(distance(first_, psn))] = false;
  }
  // Removes PSNs before `first`.
  void move_to(Psn first) {
    while (!in_.empty() && before(first_, first)) {
      in_.pop_front();
      first_ = first_ + 1;
    }
    first_ = first;
  }

 private:
  Psn first_;
  Fifo<bool> in_;  // by distance from `first_`
};

}  // namespace rnicsim::roce
