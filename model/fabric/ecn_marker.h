// Marking by random early detection (RED; RFC 3168, and the congestion point of DCQCN): how much waits in a port's
// queue of one priority decides whether a frame is marked.
#pragma once

#include <cstdint>

#include "model/base/draw.h"
#include "model/base/frame.h"
#include "model/base/priority_map.h"
#include "model/fabric/switch_params.h"

namespace rnicsim::fabric {

class EcnMarker {
 public:
  explicit EcnMarker(const EcnParams& params) : params_(params), at_dequeue_(params.at == EcnParams::kAtWords[0]) {}

  bool is_active(std::uint8_t priority) const { return (params_.priorities >> priority & 1) != 0; }
  bool at_dequeue() const { return at_dequeue_; }
  bool drops_not_ect() const { return params_.drop_not_ect; }
  // `queue`: bytes that wait, without the frame.
  bool draws_mark(std::uint64_t queue, SmallGenerator& generator) const {
    if (queue < params_.kmin.bytes) return false;
    if (queue >= params_.kmax.bytes) return true;
    const auto above = static_cast<double>(queue - params_.kmin.bytes);
    return generator.draw(params_.pmax * above / static_cast<double>(params_.kmax.bytes - params_.kmin.bytes));
  }

 private:
  const EcnParams params_;
  const bool at_dequeue_;
};

}  // namespace rnicsim::fabric
