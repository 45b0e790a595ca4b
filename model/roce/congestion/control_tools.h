// SPDX-License-Identifier: Apache-2.0
// Helpers of several congestion controls: bounds of a rate, bytes of a rate in a time, and round trips counted in
// bytes. A control that counts bytes needs no sequence numbers and no timer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

#include "model/base/policy_params.h"
#include "model/base/units.h"
#include "model/roce/congestion.h"

namespace rnicsim::roce {

inline constexpr double kBitsOfByte = 8;
inline constexpr double kPsOfSecond = 1e12;

// Bytes that leave at `rate` (bits per second) in `time`.
inline double bytes_in(Duration time, double rate) {
  return rate * static_cast<double>(time.ps) / (kBitsOfByte * kPsOfSecond);
}
// Bits per second of `bytes` in `time`, which is not 0.
inline double rate_of(double bytes, Duration time) {
  return bytes * kBitsOfByte * kPsOfSecond / static_cast<double>(time.ps);
}

// Limits a rate to `least` .. line rate. If the line is slower than `least`, every rate is the line's.
class RateBounds {
 public:
  RateBounds(BitRate least, BitRate line)
      : line_(static_cast<double>(line.bits_per_second)),
        least_(std::min(static_cast<double>(least.bits_per_second), line_)) {}

  double line() const { return line_; }
  double least() const { return least_; }
  double within(double rate) const { return std::clamp(rate, least_, line_); }

 private:
  double line_;
  double least_;
};

// A round trip, counted in bytes: it ends when a packet is acknowledged that left after its begin.
class RoundTrip {
 public:
  // `in_flight`: bytes that are unacknowledged at the begin.
  void begin(std::uint64_t in_flight) {
    left_ = in_flight;
    over_ = false;
  }
  // Call once for each acknowledgement.
  bool over(std::uint64_t acknowledged) {
    over_ = over_ || acknowledged > left_;
    left_ -= std::min(acknowledged, left_);
    return over_;
  }

 private:
  std::uint64_t left_ = 0;
  bool over_ = false;
};

// Keeps reactions a minimum time apart.
class TimeApart {
 public:
  bool passed(Duration now, Duration apart) const { return !last_ || now - *last_ >= apart; }
  void reacted(Duration now) { last_ = now; }

 private:
  std::optional<Duration> last_;
};

// The window in whole bytes for the seam: at least a full packet (`packet` bytes).
inline std::uint64_t whole_window(double window, std::uint32_t packet) {
  constexpr double kMost = 1e18;  // keeps every window within an integer
  return std::max<std::uint64_t>({static_cast<std::uint64_t>(std::clamp(window, 0.0, kMost)), packet, 1});
}

template <class Control>
std::unique_ptr<CongestionControl> make_control(const PolicyParams* params, BitRate line) {
  return std::make_unique<Control>(params, line);
}

}  // namespace rnicsim::roce
