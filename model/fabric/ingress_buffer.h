// What a switch holds of each input port and priority that must not lose a frame, and when the sender at the other end
// of that cable is to pause (IEEE 802.1Qbb): at the threshold (shared_buffer.h) the switch sends a pause, and sends it
// again before its time has passed, until so little is held that the sender may go on. What the sender still sends
// meanwhile has the headroom.
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
  // With the rate of each port.
  IngressBuffer(const PfcParams& params, const std::vector<BitRate>& rates, SharedBuffer& memory);

  Output<std::uint32_t, PriorityPause> pause;  // to be told at the other end of that port's cable

  bool lossless(std::uint8_t priority) const { return params_.priorities >> priority & 1; }
  // False: there is no room for it, and nothing is held.
  bool hold(std::uint32_t port, std::uint8_t priority, std::uint32_t bytes);
  void let_go(std::uint32_t port, std::uint8_t priority, std::uint32_t bytes);
  // Call this after shared memory was given back: thresholds are higher, and paused senders may go on.
  void look();
  // nullopt: its sender was not asked to pause.
  std::optional<StoppedBuffer> stopped(std::uint32_t port, std::uint8_t priority) const;
  // For how long the sender at that port's cable was asked to pause this priority, up to now.
  Counter stopped_ps(std::uint32_t port, std::uint8_t priority) const;
  // The most bytes that were ever held.
  Counter most_held(std::uint32_t port, std::uint8_t priority) const {
    return held_.empty() ? 0 : held_[port][priority].most;
  }

 private:
  struct Held {
    SharedBuffer::Use use;
    Counter most = 0;
    std::uint32_t stops = 0;                   // how often its sender was stopped
    bool stopped = false;
    Duration since{};                          // it is stopped
    Counter stopped_ps = 0;                    // before that
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
  std::vector<Duration> half_pauses_;          // by port
  std::vector<std::array<Held, kPriorities>> held_;
  std::set<std::pair<std::uint32_t, std::uint8_t>> stopped_;  // ports and priorities whose sender was stopped
  EventQueue<Refresh> refreshes_{[this] { refresh_due(); }};
};

}  // namespace rnicsim::fabric
