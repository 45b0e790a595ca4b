// SPDX-License-Identifier: Apache-2.0
// A non-blocking Ethernet switch: a frame leaves by a port that leads to its destination, after the switch's latency
// and after waiting frames, by priority. A policy chooses among several ports (path_choice.h). MAC addresses and routes
// come from the topology; a frame for an unknown address is dropped. A multicast frame leaves by every port of the
// topology's tree except its input port, because switches do not track group members.
//
// Frames are processed in the order in which their last bits arrive; at equal times in the order of ports. So a
// switch's behaviour depends only on the frames on its cables and their times.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/base/delay_line.h"
#include "model/base/frame.h"
#include "model/base/params.h"
#include "model/base/ports/line_timing.h"
#include "model/base/ports/pause_frame.h"
#include "model/base/ports/priority_map.h"
#include "model/base/ports/transmit_port.h"
#include "model/base/stats.h"
#include "model/base/stream.h"
#include "model/base/trace.h"
#include "model/fabric/ecn_marker.h"
#include "model/fabric/ingress_buffer.h"
#include "model/fabric/path_choice.h"
#include "model/fabric/pause_watchdog.h"
#include "model/fabric/port_histograms.h"
#include "model/fabric/shared_buffer.h"
#include "model/fabric/stations.h"
#include "model/fabric/stopped_buffer.h"
#include "model/fabric/switch_params.h"

namespace rnicsim::fabric {

// A switch's place in the topology.
struct SwitchWiring {
  std::uint32_t number = 0;       // unique number of the switch, as in Stations::Place
  std::vector<LineTiming> lines;  // by port
  std::shared_ptr<const Stations> stations;
  // First ports of the shortest paths to another switch: ways[way_to[its number]]; empty: no path.
  std::vector<std::uint16_t> way_to;
  std::vector<std::vector<std::uint16_t>> ways;
  std::vector<std::uint16_t> flooded;  // ports of the tree for multicast frames
  std::uint64_t seed = 1;              // with `number`: seeds the choice among equal paths
};

// A queue's length has changed. `bytes`: frames that wait or are being sent.
struct QueueChanged {
  std::uint32_t port;
  std::uint8_t priority;
  std::uint64_t bytes;
};

// A port pauses a priority until `until`; the present time ends the pause.
struct QueuePaused {
  std::uint32_t port;
  std::uint8_t priority;
  Duration until;
};

class Switch : public sc_core::sc_module {
 public:
  Switch(sc_core::sc_module_name name, const SwitchParams& params, SwitchWiring wiring);

  Output<Frame>& out(std::size_t port) { return ports_[port]->out; }
  trace::Point<Frame> pause_sent;  // the last bit of a control frame has left
  trace::Point<Frame> marked;      // the frame now has the mark CE
  trace::Point<QueueChanged> queue_changed;
  trace::Point<QueuePaused> queue_paused;

  // A frame from the port's cable; its last bit arrives after `delay`.
  void receive(std::size_t port, Frame&& frame, Duration delay);

  SwitchCounters counters() const;
  SwitchPortCounters port_counters(std::size_t port) const;
  std::size_t ports() const { return ports_.size(); }
  std::vector<PortHistograms> histograms() const;  // by port; empty without switch.histograms
  const PauseWatchdog& watchdog() const { return watchdog_; }
  // --- Input of the deadlock search, by port and priority.
  std::vector<StoppedBuffer> stopped_buffers() const;
  std::vector<PausedBytes> paused_bytes() const;  // lossless priorities only

 private:
  struct Port {
    Port(Switch& owner, std::uint32_t number, const LineTiming& timing, std::uint64_t seed);
    Switch& home;
    const std::uint32_t number;
    const LineTiming timing;
    DelayLine<Frame> arriving{[this] { home.arrive_due(*this); }};
    TransmitPort queues;
    std::array<SharedBuffer::Use, kPriorities> queue_use{};  // lossy priorities
    Output<Frame> out;
    SmallGenerator generator;                                 // for marks and jitter
    DelayLine<Frame> late{[this] { home.late_due(*this); }};  // frames delayed by jitter
    Duration last_put_off{};
    SwitchPortCounters counted;
    // By priority: the last pause; `counted` has the time of earlier ones.
    std::array<Duration, kPriorities> paused_since{}, paused_until{};
    Counter paused_so_far(std::size_t priority) const {
      const auto end = std::min(now(), paused_until[priority]);
      return end > paused_since[priority] ? static_cast<Counter>((end - paused_since[priority]).ps) : 0;
    }
  };

  // Queries for the path choice.
  struct View final : SwitchView {
    explicit View(const Switch& owner) : home(owner) {}
    Duration time() const override { return now(); }
    std::uint8_t priority_of(const Frame& frame) const override { return home.priorities_.of(frame); }
    std::uint64_t waiting_bytes(std::uint16_t port, std::uint8_t priority) const override {
      return home.ports_[port]->queues.bytes(priority);
    }
    std::uint64_t waiting_bytes(std::uint16_t port) const override { return home.ports_[port]->queues.bytes(); }
    const Switch& home;
  };

  void arrive_due(Port& port);
  void put_off(Port& port, Frame&& frame);
  void late_due(Port& port);
  void arrive(std::uint32_t from, Frame&& frame);
  void arrive_for_group(std::uint32_t from, const Frame& frame);
  std::optional<std::uint32_t> way_of(const Frame& frame);
  void forward(std::uint32_t from, std::uint32_t to, Frame&& frame);
  bool take_room(std::uint32_t from, std::uint32_t to, std::uint8_t priority, const Frame& frame);
  void send(std::uint32_t from, std::uint32_t to, std::uint8_t priority, Frame&& frame);
  void leave_due(Port& port);
  bool lose_not_ect(Port& port, std::uint8_t priority, const Frame& frame);
  void mark(Port& port, std::uint8_t priority, Frame& frame);
  [[gnu::noinline]] void add_hop(const Port& port, TransmitPort::Departure& leaving) const;
  void lose(Counter& counter);
  void send_pause(std::uint32_t port, const PriorityPause& pause);
  void take_control(std::uint32_t from, const Frame& frame);
  void take_pause(Port& port, std::uint8_t priority, Duration until);
  void begin_storm(PauseWatchdog::Queue queue);
  void record_queues();
  void tell_length(const Port& port, std::uint8_t priority) const {
    if (queue_changed) queue_changed({port.number, priority, port.queues.bytes(priority)});
  }

  const SwitchParams params_;
  const SwitchWiring wiring_;
  const PriorityMap priorities_;
  const View view_{*this};
  const std::unique_ptr<PathChoice> path_;
  bool alike_ = true;  // all lines have the same timing
  std::vector<std::unique_ptr<Port>> ports_;
  SharedBuffer memory_;
  IngressBuffer ingress_;
  PauseWatchdog watchdog_;
  const EcnMarker ecn_;
  const bool jitter_begins_;  // jitter "auto": starts at the first lost frame
  bool jitter_;
  SwitchCounters counters_;
  std::vector<PortRecord> records_;  // by port; empty without switch.histograms
};

}  // namespace rnicsim::fabric
