// SPDX-License-Identifier: Apache-2.0
#include "model/nic/engine/adaptive_retransmission.h"

#include <algorithm>
#include <bit>
#include <ranges>

#include "model/base/parse_number.h"

namespace rnicsim::nic {
namespace {

constexpr std::int64_t kMicrosecond = 1'000'000;  // ps
constexpr std::size_t kMostRanges = 4;

bool is_power_of_two_us(Duration time) {
  return time.ps % kMicrosecond == 0 && std::has_single_bit(static_cast<std::uint64_t>(time.ps / kMicrosecond));
}

// Parses "low:size:retries"; nullopt: another text.
std::optional<std::array<std::uint32_t, 3>> numbers_of(std::string_view entry) {
  std::array<std::uint32_t, 3> numbers{};
  std::size_t count = 0;
  for (const auto part : std::views::split(entry, ':')) {
    const auto number = parse_number<std::uint32_t>({part.begin(), part.end()});
    if (!number || count == numbers.size()) return std::nullopt;
    numbers[count++] = *number;
  }
  return count == numbers.size() ? std::optional(numbers) : std::nullopt;
}

}  // namespace

void AdaptiveRetransmissionParams::describe(ParamVisitor& visit) {
  visit.param("time_base", time_base,
              "unit of the timeouts, a power of two of microseconds, 4 us at least; 0: nic.adaptive_timeout counts",
              {0, 1e12});
  visit.param("timeout_init_low_bound", timeout_init_low_bound,
              "a queue pair's first timeout is time_base times 2 to the power of this, at least",
              {0, AdaptiveTimeouts::kMostExponent});
  visit.param("timeout_init_range_size", timeout_init_range_size,
              "number of exponents from timeout_init_low_bound on, from which each queue pair draws one",
              {1, AdaptiveTimeouts::kMostExponent + 1});
  visit.param("timeout_ranges", timeout_ranges,
              "up to four ranges of exponents, low:size:retries: exponents from low on, each used so many times before "
              "the next one");
  visit.param("start_range_index", start_range_index, "index of the range after a first timeout outside of all ranges",
              {0, 3});
  visit.param("dec_mode", dec_mode,
              "timeout after an answer: the lowest timeout of its range, half of the timeout, or a quarter", kDecWords);
  const auto ranges = AdaptiveTimeouts::parse(timeout_ranges);
  visit.refuse(time_base != Duration{} && (time_base < Duration{4 * kMicrosecond} || !is_power_of_two_us(time_base)),
               "time_base", "is not a power of two of microseconds, at least 4 us");
  visit.refuse(timeout_init_low_bound + timeout_init_range_size > AdaptiveTimeouts::kMostExponent + 1,
               "timeout_init_range_size", "goes beyond the exponent 20");
  visit.refuse(!ranges, "timeout_ranges",
               "is not a list of one to four low:size:retries that rise and do not overlap, such as \"4:3:2 8:4:1\"");
  visit.refuse(ranges && start_range_index >= ranges->size(), "start_range_index",
               "is not the index of a range in timeout_ranges");
  visit.idle(time_base == Duration{},
             {"timeout_init_low_bound", "timeout_init_range_size", "timeout_ranges", "start_range_index", "dec_mode"},
             "time_base");
}

std::optional<std::vector<AdaptiveTimeouts::Range>> AdaptiveTimeouts::parse(std::string_view text) {
  std::vector<Range> ranges;
  for (const auto part : std::views::split(text, ' ')) {
    const std::string_view entry(part.begin(), part.end());
    if (entry.empty()) continue;
    const auto numbers = numbers_of(entry);
    if (!numbers) return std::nullopt;
    const auto [low, size, retries] = *numbers;
    const bool overlaps = !ranges.empty() && low <= ranges.back().top();
    if (size == 0 || retries == 0 || low > kMostExponent || size > kMostExponent + 1 - low || overlaps)
      return std::nullopt;
    ranges.push_back({low, size, retries});
  }
  return ranges.empty() || ranges.size() > kMostRanges ? std::nullopt : std::optional(std::move(ranges));
}

AdaptiveTimeouts::AdaptiveTimeouts(const AdaptiveRetransmissionParams& params)
    : time_base_(params.time_base),
      init_low_(params.timeout_init_low_bound),
      init_size_(params.timeout_init_range_size),
      start_(params.start_range_index),
      decrement_(
          static_cast<std::uint32_t>(std::ranges::find(AdaptiveRetransmissionParams::kDecWords, params.dec_mode) -
                                     std::begin(AdaptiveRetransmissionParams::kDecWords))),
      ranges_(parse(params.timeout_ranges).value_or(std::vector<Range>{})) {}

void AdaptiveTimeouts::begin(AdaptiveTimer& timer, std::uint64_t draw) const {
  timer.begun = true;
  timer.exponent = static_cast<std::uint8_t>(init_low_ + draw);
  timer.range.reset();
}

bool AdaptiveTimeouts::expired(AdaptiveTimer& timer) const {
  timer.waited += timeout(timer);
  go_on(timer);
  if (timer.waited < timer.own) return false;
  timer.waited = {};
  return true;
}

void AdaptiveTimeouts::go_on(AdaptiveTimer& timer) const {
  if (timer.range) {
    if (++timer.uses >= ranges_[*timer.range].retries) rise(timer);
    return;
  }
  const auto holds = [&](const Range& range) { return range.low <= timer.exponent && timer.exponent <= range.top(); };
  const auto found = std::ranges::find_if(ranges_, holds);
  if (found != ranges_.end()) {
    timer.range = static_cast<std::uint8_t>(found - ranges_.begin());
    return rise(timer);
  }
  timer.range = static_cast<std::uint8_t>(start_);
  timer.exponent = static_cast<std::uint8_t>(ranges_[start_].low);
  timer.uses = 0;
}

// The exponent stays at the top of the last range.
void AdaptiveTimeouts::rise(AdaptiveTimer& timer) const {
  timer.uses = 0;
  if (timer.exponent < ranges_[*timer.range].top()) return void(++timer.exponent);
  if (*timer.range + 1u == ranges_.size()) return;
  ++*timer.range;
  timer.exponent = static_cast<std::uint8_t>(ranges_[*timer.range].low);
}

// From the lowest exponent of a range the timer falls to the range before.
void AdaptiveTimeouts::progressed(AdaptiveTimer& timer) const {
  timer.waited = {};
  timer.uses = 0;
  if (!timer.range) return;
  const auto& range = ranges_[*timer.range];
  if (timer.exponent == range.low && *timer.range != 0) {
    --*timer.range;
    const auto& below = ranges_[*timer.range];
    timer.exponent = static_cast<std::uint8_t>(decrement_ == 0 ? below.low : below.top());
    return;
  }
  const bool far = decrement_ == 0 || timer.exponent < range.low + decrement_;
  timer.exponent = static_cast<std::uint8_t>(far ? range.low : timer.exponent - decrement_);
}

}  // namespace rnicsim::nic
