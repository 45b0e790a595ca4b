// SPDX-License-Identifier: Apache-2.0
// Last bytes of a trace: the place of its index. They are a skippable zstd frame, so zstd unpacks the file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace rnicsim::sim {

struct TraceTrailer {
  static constexpr std::size_t kBytes = 32;

  std::uint64_t offset, bytes;  // of the index's frame in the file

  bool operator==(const TraceTrailer&) const = default;

  std::array<std::byte, kBytes> encoded() const {
    std::array<std::byte, kBytes> out;
    std::memcpy(out.data(), kStart.data(), kStart.size());
    for (std::size_t i = 0; i < 8; ++i) {
      out[kStart.size() + i] = std::byte(offset >> 8 * i);
      out[kStart.size() + 8 + i] = std::byte(bytes >> 8 * i);
    }
    return out;
  }

  // nullopt: the bytes are no trailer.
  static std::optional<TraceTrailer> of(std::span<const std::byte, kBytes> in) {
    if (std::memcmp(in.data(), kStart.data(), kStart.size()) != 0) return {};
    TraceTrailer trailer{0, 0};
    for (std::size_t i = 0; i < 8; ++i) {
      trailer.offset |= std::to_integer<std::uint64_t>(in[kStart.size() + i]) << 8 * i;
      trailer.bytes |= std::to_integer<std::uint64_t>(in[kStart.size() + 8 + i]) << 8 * i;
    }
    return trailer;
  }

 private:
  // zstd's number of a skippable frame (0x184d2a5e), the length of the rest (24), and our mark.
  static constexpr std::array<char, 16> kStart{'\x5e', '\x2a', '\x4d', '\x18', 24,  0,   0,   0,
                                               'r',    'n',    'i',    'c',    'i', 'n', 'd', 'x'};
};

}  // namespace rnicsim::sim
