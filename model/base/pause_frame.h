// Priority-based flow control (IEEE 802.1Qbb) on the wire: a MAC control frame that says for which priorities the
// receiver is to send nothing, and how long. It goes from one end of a cable to the other, and no further.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "model/base/frame.h"
#include "model/base/priority_map.h"
#include "model/base/units.h"

namespace rnicsim {

struct PriorityPause {
  static constexpr std::uint64_t kQuantumBytes = 64;  // a quantum of time is that of 512 bits

  std::uint8_t enabled = 0;                           // a bit a priority: it says something of that one
  std::array<std::uint16_t, kPriorities> quanta{};    // 0: go on

  Duration time(std::size_t priority, BitRate rate) const {
    return rate.time_for({quanta[priority] * kQuantumBytes});
  }
  bool operator==(const PriorityPause&) const = default;
};

Frame to_frame(const PriorityPause& pause, const FrameBody::Mac& source);

// For the other end of the cable alone, whatever it says.
inline bool is_mac_control(const Frame& frame) {
  // A comparison of arrays would be a call, and each frame is asked.
  const auto& mac = frame.destination_mac();
  return mac[0] == 0x01 && mac[1] == 0x80 && mac[2] == 0xc2 && mac[3] == 0 && mac[4] == 0 && mac[5] == 1;
}
// nullopt: it is of another kind, or cut short.
std::optional<PriorityPause> priority_pause_of(const Frame& frame);

}  // namespace rnicsim
