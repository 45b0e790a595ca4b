// SPDX-License-Identifier: Apache-2.0
// Chooses, among some randomly drawn paths, the one with the fewest bytes waiting at its port: the power of two choices
// (Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing", 2001). Two draws balance the load nearly as
// well as a comparison of all paths.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "model/base/draw.h"
#include "model/fabric/path_choice.h"

namespace rnicsim::fabric {

class LessLoaded {
 public:
  enum class Load : std::uint8_t { priority, port };

  // `choices`: number of different paths to draw; all paths if there are not more.
  LessLoaded(std::uint32_t choices, Load load, const SmallGenerator& generator)
      : choices_(choices), load_(load), generator_(generator) {}

  // Compares the drawn paths; at equal load the first drawn path wins. `also`: a path that is compared before the drawn
  // ones.
  std::uint32_t choose(const Frame& frame, const Ways& ways, const SwitchView& view,
                       std::optional<std::uint32_t> also = std::nullopt) {
    const auto count = static_cast<std::uint32_t>(ways.ports.size());
    if (choices_ == 1 && !also) return static_cast<std::uint32_t>(generator_.draw_below(count));
    const auto priority = view.priority_of(frame);
    Best best;
    const auto look = [&](std::uint32_t way) {
      const auto port = ways.ports[way];
      best.take(way, load_ == Load::port ? view.waiting_bytes(port) : view.waiting_bytes(port, priority));
    };
    if (also) look(*also);
    drawn_.resize(count);
    std::iota(drawn_.begin(), drawn_.end(), 0u);
    for (std::uint32_t i = 0; i < std::min(choices_, count); ++i) {
      std::swap(drawn_[i], drawn_[i + generator_.draw_below(count - i)]);
      look(drawn_[i]);
    }
    return best.way;
  }

 private:
  struct Best {
    std::uint32_t way = 0;
    std::uint64_t bytes = std::numeric_limits<std::uint64_t>::max();
    void take(std::uint32_t other, std::uint64_t load) {
      if (load < bytes) *this = {other, load};
    }
  };

  const std::uint32_t choices_;
  const Load load_;
  SmallGenerator generator_;
  std::vector<std::uint32_t> drawn_;  // permutation of the paths, the drawn ones first
};

}  // namespace rnicsim::fabric
