// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/native/contention.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdint>

namespace rnicsim::sim {
namespace {

using namespace std::chrono_literals;

constexpr auto kMeasurement = 20ms;
constexpr int kTolerated = 10;  // the wait for a processor may be 1/10 of the time
// After this time another measurement tells whether the other programs have ended.
constexpr auto kContention = 1s;

}  // namespace

Contention::Contention(const char* statistics) : statistics_(::open(statistics, O_RDONLY | O_CLOEXEC)) {}

std::optional<std::chrono::nanoseconds> Contention::waited() const {
  std::array<char, 96> text;
  const auto length = ::pread(statistics_.get(), text.data(), text.size(), 0);
  if (length <= 0) return {};
  const char* end = text.data() + length;
  std::uint64_t ran = 0, waited = 0;
  const auto [space, first_error] = std::from_chars(text.data(), end, ran);
  if (first_error != std::errc{} || space == end) return {};
  if (std::from_chars(space + 1, end, waited).ec != std::errc{}) return {};
  return std::chrono::nanoseconds(waited);
}

void Contention::apart(Time now) {
  const auto passed = now - began_;
  if (present_ || (measures_ && passed < kMeasurement)) return;
  const auto until_now = waited();
  if (!until_now) return;
  present_ = measures_ && (*until_now - waited_) * kTolerated > passed;
  measures_ = !present_;
  began_ = now;
  waited_ = *until_now;
}

void Contention::shared(Time now) {
  measures_ = false;
  if (present_ && now - began_ >= kContention) present_ = false;
}

}  // namespace rnicsim::sim
