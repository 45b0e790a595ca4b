// SPDX-License-Identifier: Apache-2.0
// The receive buffer: holds frames until their payload is on its way over PCIe. The buffer fills when frames arrive
// faster than the engine takes them, addresses are translated, or PCIe takes the payload. A frame that finds no space
// is lost. Before that, the sender is asked to pause (IEEE 802.1Qbb), if the frame's priority is lossless.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "model/base/agenda.h"
#include "model/base/frame.h"
#include "model/base/params.h"
#include "model/base/ports/pause_frame.h"
#include "model/base/ports/priority_map.h"
#include "model/base/stream.h"
#include "model/nic/packets/receive/buffer_hold.h"
#include "model/nic/packets/receive/receive_buffer_params.h"

namespace rnicsim::nic {

class ReceiveBuffer {
 public:
  // `rate`: of the port.
  ReceiveBuffer(const ReceiveBufferParams& params, const PriorityMap& priorities, BitRate rate);

  std::function<std::uint64_t()> draining;  // payload bytes that wait for a translation or for PCIe
  Output<PriorityPause> pause;              // to be sent to the other end of the cable

  // nullopt: no space, the frame is lost.
  std::optional<BufferHold> take(const Frame& frame);
  void reset();

  const ReceiveBufferCounters& counters() const { return counters_; }

 private:
  void tell(std::uint32_t quanta);
  void look();

  const ReceiveBufferParams params_;
  const PriorityMap priorities_;
  const Duration half_pause_;
  std::uint64_t taken_ = 0;
  std::uint8_t paused_ = 0;          // paused priorities, a bit each
  Duration told_;                    // time of the last pause frame
  Alarm looks_{[this] { look(); }};  // while priorities are paused: checks for space, and renews the pause
  ReceiveBufferCounters counters_;
};

}  // namespace rnicsim::nic
