// SPDX-License-Identifier: Apache-2.0
// Priority-based flow control (IEEE 802.1Qbb): a MAC control frame that names the priorities which its receiver must
// not send, and for how long. The frame goes from one end of a cable to the other and is not forwarded.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "model/base/frame.h"
#include "model/base/ports/priority_map.h"
#include "model/base/units.h"

namespace rnicsim {

struct PriorityPause {
  static constexpr std::uint64_t kQuantumBytes = 64;  // the time of 512 bits at the line rate

  std::uint8_t enabled = 0;                         // a bit a priority: the priorities whose quanta are valid
  std::array<std::uint16_t, kPriorities> quanta{};  // 0: the priority may send again

  Duration time(std::size_t priority, BitRate rate) const { return rate.time_for({quanta[priority] * kQuantumBytes}); }
  bool operator==(const PriorityPause&) const = default;
};

Frame to_frame(const PriorityPause& pause, const FrameBody::Mac& source);

// True for every MAC control frame, which the other end of the cable consumes.
inline bool is_mac_control(const Frame& frame) {
  // Byte by byte: std::array's == would be a function call for each frame.
  const auto& mac = frame.destination_mac();
  return mac[0] == 0x01 && mac[1] == 0x80 && mac[2] == 0xc2 && mac[3] == 0 && mac[4] == 0 && mac[5] == 1;
}
// nullopt: another kind of frame, or one that is cut short.
std::optional<PriorityPause> priority_pause_of(const Frame& frame);

}  // namespace rnicsim
