// Holds the packets of a queue pair to its rate (ibv_modify_qp_rate_limit(3)): a leaky bucket, of as many bytes as may
// leave at once. Of one that is empty a packet leaves when those before it are paid for.
#pragma once

#include <algorithm>
#include <cstdint>

#include "model/base/units.h"

namespace rnicsim::nic {

class Pacer {
 public:
  // Of a frame on the wire, with its padding and FCS.
  static std::uint32_t bytes_of_frame(std::uint32_t bytes) { return std::max(bytes, kLeastFrame) + kFcs; }

  Duration not_before(std::uint32_t kilobits_a_second, std::uint32_t burst) const {
    return paid_for_ - time_of(burst, kilobits_a_second);
  }
  void sent(std::uint32_t bytes, std::uint32_t kilobits_a_second, Duration now) {
    paid_for_ = std::max(paid_for_, now) + time_of(bytes, kilobits_a_second);
  }
  void reset() { paid_for_ = {}; }

 private:
  static constexpr std::uint32_t kLeastFrame = 60, kFcs = 4;

  static Duration time_of(std::uint32_t bytes, std::uint32_t kilobits_a_second) {
    constexpr std::int64_t kPicosecondsABit = 1'000'000'000;  // at one kb/s
    return Duration{std::int64_t{bytes} * 8 * kPicosecondsABit / kilobits_a_second};
  }

  Duration paid_for_;                    // when all that was sent is
};

}  // namespace rnicsim::nic
