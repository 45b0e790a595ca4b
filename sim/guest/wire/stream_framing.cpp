// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/wire/stream_framing.h"

#include <boost/endian/conversion.hpp>
#include <utility>

namespace rnicsim::sim {

std::optional<std::span<const std::byte>> StreamFraming::next() {
  const auto rest = std::span(std::as_const(bytes_)).subspan(taken_);
  if (broken_) return std::nullopt;
  if (rest.size() >= kLengthBytes) {
    const auto length = boost::endian::load_big_u32(reinterpret_cast<const unsigned char*>(rest.data()));
    if (length > kMostBytes) {
      broken_ = length;
      return std::nullopt;
    }
    if (rest.size() >= kLengthBytes + length) {
      taken_ += kLengthBytes + length;
      return rest.subspan(kLengthBytes, length);
    }
  }
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(taken_));
  taken_ = 0;
  return std::nullopt;
}

void StreamFraming::append(std::vector<std::byte>& out, std::span<const std::byte> frame) {
  unsigned char length[kLengthBytes];
  boost::endian::store_big_u32(length, static_cast<std::uint32_t>(frame.size()));
  const auto bytes = std::as_bytes(std::span(length));
  out.insert(out.end(), bytes.begin(), bytes.end());
  out.insert(out.end(), frame.begin(), frame.end());
}

}  // namespace rnicsim::sim
