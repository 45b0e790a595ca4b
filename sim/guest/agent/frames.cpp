// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/agent/frames.h"

namespace rnicsim::sim {
namespace {

constexpr std::uint16_t kMark = 0x6772;

void put(std::string& bytes, std::uint32_t value, int count) {
  for (int i = 0; i < count; ++i) bytes += char(value >> 8 * i & 0xff);
}

std::uint32_t get(std::string_view bytes, std::size_t at, std::size_t count) {
  std::uint32_t value = 0;
  for (std::size_t i = count; i-- > 0;) value = value << 8 | std::uint8_t(bytes[at + i]);
  return value;
}

}  // namespace

std::string encode_frame(FrameKind kind, std::uint32_t command, std::string_view payload) {
  std::string bytes;
  bytes.reserve(kFrameHeaderBytes + payload.size());
  put(bytes, kMark, 2);
  put(bytes, std::uint32_t(kind), 2);
  put(bytes, command, 4);
  put(bytes, std::uint32_t(payload.size()), 4);
  return bytes.append(payload);
}

std::string number_payload(std::uint32_t number) {
  std::string bytes;
  put(bytes, number, 4);
  return bytes;
}

std::optional<std::uint32_t> payload_number(std::string_view payload) {
  if (payload.size() != 4) return std::nullopt;
  return get(payload, 0, 4);
}

std::optional<Frame> FrameReader::next() {
  const std::string_view rest = std::string_view(bytes_).substr(start_);
  if (broken_ || rest.size() < kFrameHeaderBytes) return std::nullopt;
  const std::uint32_t kind = get(rest, 2, 2), size = get(rest, 8, 4);
  if (get(rest, 0, 2) != kMark || kind > 0xff || size > kMostPayloadBytes) {
    broken_ = true;
    return std::nullopt;
  }
  if (rest.size() - kFrameHeaderBytes < size) {
    bytes_.erase(0, start_);
    start_ = 0;
    return std::nullopt;
  }
  start_ += kFrameHeaderBytes + size;
  return Frame{FrameKind(kind), get(rest, 4, 4), std::string(rest.substr(kFrameHeaderBytes, size))};
}

}  // namespace rnicsim::sim
