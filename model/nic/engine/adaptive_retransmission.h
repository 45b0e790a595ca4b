// SPDX-License-Identifier: Apache-2.0
// Adaptive retransmission with the parameters of ConnectX's firmware (NVIDIA, "Adaptive Retransmission: Parameters
// Control", 2025): timeouts of a queue pair before its own ACK timeout. Each timeout is time_base times a power of two.
// Exponents are in ranges: each exponent is used a number of times, then the next one; after a range comes the next
// range. The first exponent of a queue pair is random, so that queue pairs that lost packets together do not resend
// together.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/params.h"

namespace rnicsim::nic {

struct AdaptiveRetransmissionParams {
  static constexpr const char* kDecWords[] = {"low_bound", "half", "quarter"};

  Duration time_base{};  // 0: no profile
  std::uint32_t timeout_init_low_bound = 4;
  std::uint32_t timeout_init_range_size = 1;
  std::string timeout_ranges = "4:6:1";
  std::uint32_t start_range_index = 0;
  std::string dec_mode{kDecWords[0]};

  void describe(ParamVisitor& visit);
};

// The state of one queue pair's timer.
struct AdaptiveTimer {
  bool begun = false;
  std::uint8_t exponent = 0;
  std::optional<std::uint8_t> range;  // nullopt: the exponent is the first one, which is used once
  std::uint32_t uses = 0;             // uses of the exponent so far
  Duration own{};                     // the queue pair's ACK timeout
  Duration waited{};                  // time without progress since the last counted retry
};

class AdaptiveTimeouts {
 public:
  static constexpr std::uint32_t kMostExponent = 20;

  explicit AdaptiveTimeouts(const AdaptiveRetransmissionParams& params);

  explicit operator bool() const { return time_base_ != Duration{}; }
  // `draw`: a random number below first_choices().
  std::uint32_t first_choices() const { return init_size_; }
  void begin(AdaptiveTimer& timer, std::uint64_t draw) const;
  Duration timeout(const AdaptiveTimer& timer) const { return time_base_ * (std::int64_t{1} << timer.exponent); }
  // Call when the timeout has passed. True: the queue pair's own timeout has also passed since the last retry, so this
  // timeout counts as a retry.
  bool expired(AdaptiveTimer& timer) const;
  // Call when an answer came after a timeout.
  void progressed(AdaptiveTimer& timer) const;

 private:
  struct Range {
    std::uint32_t low, size, retries;
    std::uint32_t top() const { return low + size - 1; }
  };
  friend struct AdaptiveRetransmissionParams;
  static std::optional<std::vector<Range>> parse(std::string_view text);

  void go_on(AdaptiveTimer& timer) const;
  void rise(AdaptiveTimer& timer) const;

  const Duration time_base_;
  const std::uint32_t init_low_, init_size_, start_;
  const std::uint32_t decrement_;  // exponent's decrement at progress; 0: to the lowest of the range
  std::vector<Range> ranges_;
};

}  // namespace rnicsim::nic
