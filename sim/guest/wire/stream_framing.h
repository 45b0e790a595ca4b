// SPDX-License-Identifier: Apache-2.0
// Ethernet frames in a stream of bytes, as QEMU's `-netdev stream` has them: the length in 4 bytes, big-endian, and the
// frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace rnicsim::sim {

class StreamFraming {
 public:
  static constexpr std::size_t kLengthBytes = 4;
  static constexpr std::size_t kMostBytes = 65536;  // limit of a frame

  void add(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  // The next whole frame, which may be empty; valid until the next call. nullopt: more bytes are needed, or the stream
  // is broken.
  std::optional<std::span<const std::byte>> next();
  // A length beyond kMostBytes arrived: the start of the next frame is unknown. The value is that length.
  const std::optional<std::uint32_t>& broken() const { return broken_; }
  // True: a part of a frame has arrived.
  bool is_within_frame() const { return taken_ < bytes_.size(); }

  static void append(std::vector<std::byte>& out, std::span<const std::byte> frame);

 private:
  std::vector<std::byte> bytes_;
  std::size_t taken_ = 0;  // bytes of bytes_ that next() has passed
  std::optional<std::uint32_t> broken_;
};

}  // namespace rnicsim::sim
