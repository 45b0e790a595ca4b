// Durations, byte counts and bit rates as types: a bare number for one does not compile.
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
  constexpr Duration& operator+=(Duration other) { ps += other.ps; return *this; }
  constexpr Duration& operator-=(Duration other) { ps -= other.ps; return *this; }
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
  // How long `size` takes at this rate, rounded up to a picosecond.
  constexpr Duration time_for(ByteCount size) const {
    constexpr std::uint64_t kPsPerByte = 8 * 1'000'000'000'000ull;  // at 1 b/s
    constexpr std::uint64_t kNarrow = 1 << 20;
    // A division of 64 bits, where it is enough, is several times faster.
    if (size.bytes <= kNarrow && bits_per_second <= 1ull << 62)
      return {static_cast<std::int64_t>((size.bytes * kPsPerByte + bits_per_second - 1) / bits_per_second)};
    __extension__ using Wide = unsigned __int128;
    return {static_cast<std::int64_t>((static_cast<Wide>(size.bytes) * kPsPerByte + bits_per_second - 1) /
                                      bits_per_second)};
  }
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

// "250 ns", "4 KiB", "100 Gb/s"; nullopt for a missing or unknown unit, a negative or an inexact value.
std::optional<Duration> parse_duration(std::string_view text);
std::optional<ByteCount> parse_byte_count(std::string_view text);
std::optional<BitRate> parse_bit_rate(std::string_view text);
std::string to_string(Duration value);
std::string to_string(ByteCount value);
std::string to_string(BitRate value);

}  // namespace rnicsim
