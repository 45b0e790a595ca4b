// SPDX-License-Identifier: Apache-2.0
// Lossless input buffers of a switch, one for each port and priority (IEEE 802.1Qbb). At the threshold
// (shared_buffer.h) the switch sends a pause to the port's peer, and repeats it before it expires until the buffer has
// drained far enough. The headroom takes frames that the peer sends before the pause takes effect.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "model/base/event_queue.h"
#include "model/base/params.h"
#include "model/base/ports/pause_frame.h"
#include "model/base/ports/priority_map.h"
#include "model/base/stats.h"
#include "model/base/stream.h"
#include "model/base/units.h"
#include "model/fabric/shared_buffer.h"
#include "model/fabric/stopped_buffer.h"
#include "model/fabric/switch_params.h"

namespace rnicsim::fabric {

class IngressBuffer {
 public:
  // `rates`: line rate of each port.
  IngressBuffer(const PfcParams& params, const std::vector<BitRate>& rates, SharedBuffer& memory);

  Output<std::uint32_t, PriorityPause> pause;  // a pause to be sent on the port's cable

  bool lossless(std::uint8_t priority) const { return params_.priorities >> priority & 1; }
  // False: no room; the frame is not held.
  bool hold(std::uint32_t port, std::uint8_t priority, std::uint32_t bytes);
  void let_go(std::uint32_t port, std::uint8_t priority, std::uint32_t bytes);
  // Call after shared memory was given back: the thresholds have risen, and paused senders may resume.
  void look();
  // nullopt: no pause is requested.
  std::optional<StoppedBuffer> stopped(std::uint32_t port, std::uint8_t priority) const;
  // Total time, up to now, for which the peer was requested to pause this priority.
  Counter stopped_ps(std::uint32_t port, std::uint8_t priority) const;
  // Largest number of bytes ever held.
  Counter most_held(std::uint32_t port, std::uint8_t priority) const {
    return held_.empty() ? 0 : held_[port][priority].most;
  }

 private:
  struct Held {
    SharedBuffer::Use use;
    Counter most = 0;
    std::uint32_t stops = 0;  // number of pauses of the sender so far
    bool stopped = false;
    Duration since{};        // start of the present pause
    Counter stopped_ps = 0;  // earlier pauses
  };
  struct Refresh {
    std::uint32_t port = 0;
    std::uint32_t stops = 0;
    std::uint8_t priority = 0;
  };

  void tell(std::uint32_t port, std::uint8_t priority, std::uint32_t quanta);
  void stop(std::uint32_t port, std::uint8_t priority);
  bool may_go_on(std::uint32_t port, std::uint8_t priority);
  void refresh_due();

  const PfcParams params_;
  SharedBuffer& memory_;
  std::vector<Duration> half_pauses_;  // by port: half the duration of a pause
  std::vector<std::array<Held, kPriorities>> held_;
  std::set<std::pair<std::uint32_t, std::uint8_t>> stopped_;  // ports and priorities with a pause in effect
  EventQueue<Refresh> refreshes_{[this] { refresh_due(); }};
};

}  // namespace rnicsim::fabric
