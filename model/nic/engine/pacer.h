// SPDX-License-Identifier: Apache-2.0
// Limits the packets of a queue pair to its rate (ibv_modify_qp_rate_limit(3)): a leaky bucket of `burst` bytes. When
// the bucket is empty, a packet waits until the packets before it are paid for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "model/base/units.h"

namespace rnicsim::nic {

class Pacer {
 public:
  // Bytes of a frame on the wire, with padding and FCS.
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

  // Limited to kMost milliseconds: the slowest rate with the largest burst exceeds a Duration.
  static Duration time_of(std::uint32_t bytes, std::uint32_t kilobits_a_second) {
    constexpr std::int64_t kPicosecondsAMillisecond = 1'000'000'000, kMost = 4'000'000'000;
    const auto [milliseconds, rest] = std::lldiv(std::int64_t{bytes} * 8, kilobits_a_second);
    if (milliseconds >= kMost) return Duration{kMost * kPicosecondsAMillisecond};
    return Duration{milliseconds * kPicosecondsAMillisecond + rest * kPicosecondsAMillisecond / kilobits_a_second};
  }

  Duration paid_for_;  // time at which all sent packets are paid for
};

}  // namespace rnicsim::nic
