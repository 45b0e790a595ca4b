// SPDX-License-Identifier: Apache-2.0
// Places in memory regions that the operations of an agent use.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "model/base/draw.h"
#include "sim/bench/agents/station.h"
#include "sim/bench/agents/zipf.h"

namespace rnicsim::sim::bench {

using Generator = std::mt19937_64;

class Walk {
 public:
  struct Place {
    std::uint32_t region = 0;
    std::uint64_t offset = 0;
  };

  Walk(const Flow& flow, ByteCount region, const std::vector<Region>& regions)
      : addressing_(flow.address),
        regions_(regions),
        limit_(region.bytes - flow.place().bytes),
        step_(step_of(flow)),
        places_(limit_ / step_ + 1),
        all_(std::min(places_ * regions.size(), flow.slots.value_or(~0ull))) {
    if (addressing_ != Addressing::zipf) return;
    zipf_ = Zipf(all_, flow.zipf);
    constexpr double kGoldenSection = 0.618;
    apart_ = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(kGoldenSection * static_cast<double>(all_)));
    while (std::gcd(apart_, all_) != 1) ++apart_;
  }

  bool moves() const { return addressing_ != Addressing::fixed && addressing_ != Addressing::one; }

  // Consecutive numbers have different places.
  Place first(std::uint64_t number) const { return place(number % all_); }
  // As first(), in the peer's memory: with Addressing::one all numbers have the same place.
  Place target(std::uint64_t number) const { return first(addressing_ == Addressing::one ? 0 : number); }

  void advance(Place& at, Generator& generator) const {
    switch (addressing_) {
      case Addressing::random:
        if (regions_.size() > 1) at.region = static_cast<std::uint32_t>(draw_below(generator, regions_.size()));
        at.offset = draw_below(generator, places_) * step_;
        return;
      case Addressing::slots: at = place(draw_below(generator, all_)); return;
      case Addressing::zipf: at = place(scattered(zipf_.draw(generator))); return;
      default: break;
    }
    at.offset += step_;
    if (at.offset <= limit_) return;
    at.offset = 0;
    if (++at.region == regions_.size()) at.region = 0;
  }

  const Region& region(const Place& place) const { return regions_[place.region]; }

 private:
  Place place(std::uint64_t number) const {
    return {static_cast<std::uint32_t>(number / places_), number % places_ * step_};
  }
  // Spreads the frequent ranks over the memory, in the same way for all agents.
  std::uint64_t scattered(std::uint64_t rank) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>(static_cast<Wide>(rank) * apart_ % all_);
  }

  Addressing addressing_;
  const std::vector<Region>& regions_;
  std::uint64_t limit_;  // last offset at which the longest operation fits
  std::uint64_t step_;
  std::uint64_t places_;  // number of places in a region
  std::uint64_t all_;
  Zipf zipf_;
  std::uint64_t apart_ = 1;
};

}  // namespace rnicsim::sim::bench
