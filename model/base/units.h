// SPDX-License-Identifier: Apache-2.0
// Durations, byte counts and bit rates as types: a bare number in their place does not compile.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rnicsim {

// Simulated time, absolute or relative, in integer picoseconds.
struct Duration {
  std::int64_t ps = 0;
  auto operator<=>(const Duration&) const = default;
  // <=> implies these; written out they compile to fewer instructions.
  friend constexpr bool operator<(Duration a, Duration b) { return a.ps < b.ps; }
  friend constexpr bool operator>(Duration a, Duration b) { return a.ps > b.ps; }
  friend constexpr bool operator<=(Duration a, Duration b) { return a.ps <= b.ps; }
  friend constexpr bool operator>=(Duration a, Duration b) { return a.ps >= b.ps; }
  constexpr Duration& operator+=(Duration other) {
    ps += other.ps;
    return *this;
  }
  constexpr Duration& operator-=(Duration other) {
    ps -= other.ps;
    return *this;
  }
};
constexpr Duration operator+(Duration a, Duration b) { return {a.ps + b.ps}; }
constexpr Duration operator-(Duration a, Duration b) { return {a.ps - b.ps}; }
constexpr Duration operator*(Duration a, std::int64_t n) { return {a.ps * n}; }
constexpr Duration operator*(std::int64_t n, Duration a) { return {a.ps * n}; }

struct ByteCount {
  std::uint64_t bytes = 0;
  auto operator<=>(const ByteCount&) const = default;
};

struct BitRate {
  std::uint64_t bits_per_second = 0;
  auto operator<=>(const BitRate&) const = default;
  // Time on the line for `size`, rounded up to a picosecond.
  constexpr Duration time_for(ByteCount size) const {
    constexpr std::uint64_t kPsPerByte = 8 * 1'000'000'000'000ull;  // at 1 b/s
    constexpr std::uint64_t kNarrow = 1 << 20;
    // A 64-bit division is several times faster than a 128-bit one.
    if (size.bytes <= kNarrow && bits_per_second <= 1ull << 62)
      return {static_cast<std::int64_t>((size.bytes * kPsPerByte + bits_per_second - 1) / bits_per_second)};
    __extension__ using Wide = unsigned __int128;
    return {static_cast<std::int64_t>((static_cast<Wide>(size.bytes) * kPsPerByte + bits_per_second - 1) /
                                      bits_per_second)};
  }
};

// A rate with a fast time_for(): a multiplication replaces the division.
class SteadyRate {
 public:
  constexpr explicit SteadyRate(BitRate rate)
      : rate_(rate), whole_ps_(kPsPerByte / rate.bits_per_second), most_(~0ull / rate.bits_per_second) {
    fraction_ps_ = static_cast<std::uint64_t>((Wide{kPsPerByte % rate.bits_per_second} << 64) / rate.bits_per_second);
  }

  constexpr BitRate rate() const { return rate_; }
  // The fraction is short by less than 2^-64 ps a byte. The exact value is a multiple of 1 / rate, so the result is
  // exact as long as bytes x rate is below 2^64.
  constexpr Duration time_for(ByteCount size) const {
    if (size.bytes > most_) return rate_.time_for(size);
    const Wide parts = Wide{size.bytes} * fraction_ps_;
    const bool rest = static_cast<std::uint64_t>(parts) != 0;
    return {static_cast<std::int64_t>(size.bytes * whole_ps_ + static_cast<std::uint64_t>(parts >> 64) + rest)};
  }

 private:
  __extension__ using Wide = unsigned __int128;
  static constexpr std::uint64_t kPsPerByte = 8 * 1'000'000'000'000ull;  // at 1 b/s

  BitRate rate_;
  std::uint64_t whole_ps_;     // ps of a byte, integer part
  std::uint64_t fraction_ps_;  // ps of a byte, fraction in units of 2^-64
  std::uint64_t most_;         // largest size in bytes for which the fast way is exact
};

namespace literals {
constexpr Duration operator""_ps(unsigned long long n) { return {static_cast<std::int64_t>(n)}; }
constexpr Duration operator""_ns(unsigned long long n) { return {static_cast<std::int64_t>(n) * 1'000}; }
constexpr Duration operator""_us(unsigned long long n) { return {static_cast<std::int64_t>(n) * 1'000'000}; }
constexpr Duration operator""_ms(unsigned long long n) { return {static_cast<std::int64_t>(n) * 1'000'000'000}; }
constexpr Duration operator""_s(unsigned long long n) { return {static_cast<std::int64_t>(n) * 1'000'000'000'000}; }
constexpr ByteCount operator""_B(unsigned long long n) { return {n}; }
constexpr ByteCount operator""_KiB(unsigned long long n) { return {n << 10}; }
constexpr ByteCount operator""_MiB(unsigned long long n) { return {n << 20}; }
constexpr BitRate operator""_Gbps(unsigned long long n) { return {n * 1'000'000'000}; }
}  // namespace literals

// "250 ns", "4 KiB" or "4 KB" (1024 or 1000 bytes each), "100 Gb/s"; nullopt for a missing or unknown unit, a negative
// or an inexact value.
std::optional<Duration> parse_duration(std::string_view text);
std::optional<ByteCount> parse_byte_count(std::string_view text);
std::optional<BitRate> parse_bit_rate(std::string_view text);
std::string to_string(Duration value);
std::string to_string(ByteCount value);
std::string to_string(BitRate value);

}  // namespace rnicsim
