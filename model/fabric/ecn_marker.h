// SPDX-License-Identifier: Apache-2.0
// Marks frames by random early detection (RED; RFC 3168, and the congestion point of DCQCN): the length of a port's
// queue of one priority decides whether a frame is marked.
#pragma once

#include <array>
#include <cstdint>

#include "model/base/draw.h"
#include "model/base/frame.h"
#include "model/base/ports/priority_map.h"
#include "model/fabric/switch_params.h"

namespace rnicsim::fabric {

class EcnMarker {
 public:
  explicit EcnMarker(const EcnParams& params)
      : params_(params), thresholds_(thresholds_of(params)), at_dequeue_(params.at == EcnParams::kAtWords[0]) {}

  bool is_active(std::uint8_t priority) const { return (params_.priorities >> priority & 1) != 0; }
  bool at_dequeue() const { return at_dequeue_; }
  bool drops_not_ect() const { return params_.drop_not_ect; }
  // `queue`: bytes waiting, without the frame itself.
  bool draws_mark(std::uint8_t priority, std::uint64_t queue, SmallGenerator& generator) const {
    const auto& red = thresholds_[priority];
    if (queue < red.kmin.bytes) return false;
    if (queue >= red.kmax.bytes) return true;
    const auto above = static_cast<double>(queue - red.kmin.bytes);
    return generator.draw(red.pmax * above / static_cast<double>(red.kmax.bytes - red.kmin.bytes));
  }

 private:
  using ByPriority = std::array<RedThresholds, kPriorities>;
  static ByPriority thresholds_of(const EcnParams& params) {
    return parse_red_thresholds(params.by_priority, {params.kmin, params.kmax, params.pmax}).value_or(ByPriority{});
  }

  const EcnParams params_;
  const ByPriority thresholds_;
  const bool at_dequeue_;
};

}  // namespace rnicsim::fabric
