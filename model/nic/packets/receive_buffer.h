// The receive buffer: frames that came, until what they bring is on its way over PCIe. The buffer fills where frames
// come faster than the engine takes them, than addresses are translated, or than PCIe takes the payload. A frame that
// finds no room is lost. Before that the sender is told to pause (IEEE 802.1Qbb), if the frame's priority is one
// without loss.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "model/base/agenda.h"
#include "model/base/frame.h"
#include "model/base/params.h"
#include "model/base/pause_frame.h"
#include "model/base/priority_map.h"
#include "model/base/stream.h"
#include "model/nic/packets/buffer_hold.h"
#include "model/nic/packets/receive_buffer_params.h"

namespace rnicsim::nic {

class ReceiveBuffer {
 public:
  // At the rate of the port.
  ReceiveBuffer(const ReceiveBufferParams& params, const PriorityMap& priorities, BitRate rate);

  std::function<std::uint64_t()> draining;   // bytes of payload that wait for a translation or for PCIe
  Output<PriorityPause> pause;               // to be told at the other end of the cable

  // nullopt: it is lost.
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
  std::uint8_t paused_ = 0;                  // priorities, a bit each
  Duration told_;                            // when they were asked last
  Alarm looks_{[this] { look(); }};          // whether there is room again, as long as some are paused
  ReceiveBufferCounters counters_;
};

}  // namespace rnicsim::nic
