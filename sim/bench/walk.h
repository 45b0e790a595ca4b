// Where in its regions an agent's operations go.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "model/base/draw.h"
#include "sim/bench/station.h"

namespace rnicsim::sim::bench {

using Generator = std::mt19937_64;

class Walk {
 public:
  struct Place {
    std::uint32_t region = 0;
    std::uint64_t offset = 0;
  };

  Walk(const Flow& flow, ByteCount region, const std::vector<Region>& regions)
      : addressing_(flow.address), regions_(regions), limit_(region.bytes - flow.place().bytes) {
    const std::uint64_t unit = addressing_ == Addressing::fixed ? 64 : 8;
    step_ = addressing_ == Addressing::stride ? flow.stride.bytes : (flow.place().bytes + unit - 1) / unit * unit;
    places_ = limit_ / step_ + 1;
  }

  bool moves() const { return addressing_ != Addressing::fixed; }

  // Neighbours begin at different places.
  Place first(std::uint64_t number) const {
    return {static_cast<std::uint32_t>(number / places_ % regions_.size()), number % places_ * step_};
  }

  void advance(Place& place, Generator& generator) const {
    if (addressing_ == Addressing::random) {
      if (regions_.size() > 1) place.region = static_cast<std::uint32_t>(draw_below(generator, regions_.size()));
      place.offset = draw_below(generator, places_) * step_;
      return;
    }
    place.offset += step_;
    if (place.offset <= limit_) return;
    place.offset = 0;
    if (++place.region == regions_.size()) place.region = 0;
  }

  const Region& region(const Place& place) const { return regions_[place.region]; }

 private:
  Addressing addressing_;
  const std::vector<Region>& regions_;
  std::uint64_t limit_;  // the last offset at which the longest operation fits
  std::uint64_t step_;
  std::uint64_t places_;
};

}  // namespace rnicsim::sim::bench
