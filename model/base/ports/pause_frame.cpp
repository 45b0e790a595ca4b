// SPDX-License-Identifier: Apache-2.0
#include "model/base/ports/pause_frame.h"

#include <algorithm>
#include <boost/endian/conversion.hpp>
#include <cstddef>
#include <span>
#include <vector>

namespace rnicsim {
namespace {

constexpr FrameBody::Mac kMacControl{0x01, 0x80, 0xc2, 0, 0, 1};
constexpr std::uint16_t kMacControlType = 0x8808;
constexpr std::uint16_t kPriorityFlowControl = 0x0101;
constexpr std::size_t kMacBytes = 6, kLeastFrame = 60;
// Offsets of type, opcode, enable vector and times; the two addresses come first.
constexpr std::size_t kType = 2 * kMacBytes, kOpcode = kType + 2, kEnabled = kOpcode + 2, kTimes = kEnabled + 2;
constexpr std::size_t kUsed = kTimes + 2 * kPriorities;

}  // namespace

Frame to_frame(const PriorityPause& pause, const FrameBody::Mac& source) {
  std::array<unsigned char, kLeastFrame> bytes{};
  std::ranges::copy(kMacControl, bytes.begin());
  std::ranges::copy(source, bytes.begin() + kMacBytes);
  boost::endian::store_big_u16(&bytes[kType], kMacControlType);
  boost::endian::store_big_u16(&bytes[kOpcode], kPriorityFlowControl);
  boost::endian::store_big_u16(&bytes[kEnabled], pause.enabled);
  for (std::size_t i = 0; i < kPriorities; ++i) boost::endian::store_big_u16(&bytes[kTimes + 2 * i], pause.quanta[i]);
  return Frame::of(Payload::copy_of(std::as_bytes(std::span(bytes))));
}

std::optional<PriorityPause> priority_pause_of(const Frame& frame) {
  std::vector<std::byte> all;  // a maker may cut the frame anywhere into header and payload
  frame.append_to(all);
  if (!is_mac_control(frame) || all.size() < kUsed) return std::nullopt;
  const auto* bytes = reinterpret_cast<const unsigned char*>(all.data());
  if (boost::endian::load_big_u16(bytes + kType) != kMacControlType ||
      boost::endian::load_big_u16(bytes + kOpcode) != kPriorityFlowControl)
    return std::nullopt;
  PriorityPause pause{.enabled = static_cast<std::uint8_t>(boost::endian::load_big_u16(bytes + kEnabled))};
  for (std::size_t i = 0; i < kPriorities; ++i) pause.quanta[i] = boost::endian::load_big_u16(bytes + kTimes + 2 * i);
  return pause;
}

}  // namespace rnicsim
