// SPDX-License-Identifier: Apache-2.0
// Congestion over time, for a timeline: rates of queue pairs with a congestion control, queues of switches, and paused
// ports. A subscriber of the trace points.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/base/ports/priority_map.h"
#include "model/base/units.h"
#include "sim/waterfall/counter_track.h"

namespace rnicsim::nic {
struct ControlChanged;
}

namespace rnicsim::sim {

class Adapter;
class System;

// Track with the value 1 while a priority of a port is paused, else 0. No trace point reports the end of a pause, so
// the track computes it.
class PauseTrack {
 public:
  PauseTrack(CounterTracks& tracks, CounterTrack& track) : tracks_(tracks), track_(track) { tracks.add(track, {}, 0); }
  void pause(Duration at, Duration until);
  // Adds the end of the last pause if the pause has ended by `at`.
  void settle(Duration at);

 private:
  CounterTracks& tracks_;
  CounterTrack& track_;
  Duration until_{};
};

class CongestionTracks {
 public:
  // Subscribes to every NIC and switch. Make the object before any process of the simulation starts; it must live as
  // long as the system. `most`: limit of samples of all tracks together.
  CongestionTracks(System& system, std::size_t most);
  CongestionTracks(const CongestionTracks&) = delete;
  CongestionTracks& operator=(const CongestionTracks&) = delete;

  // Lines of the trace-event format, each with a final comma: the tracks whose value changed, and the switches' names
  // as processes. Hosts have process numbers from 1, switches the numbers after them.
  std::string text(Duration end);

 private:
  struct QpTracks {
    CounterTrack *rate, *target, *alpha, *window, *cnps;
    std::uint64_t cnps_taken = 0;
  };
  struct QueueTracks {
    CounterTrack* bytes = nullptr;
    PauseTrack* paused = nullptr;
  };

  void watch_nic(std::uint32_t index, Adapter& adapter);
  void watch_switch(std::uint32_t index, System& system);
  QpTracks& tracks_of(std::uint32_t host, std::uint32_t qpn);
  void add(std::uint32_t host, const nic::ControlChanged& changed);
  PauseTrack& make_pause(std::uint32_t process, const std::string& name);

  CounterTracks tracks_;
  std::vector<double> lines_;  // by host: line rate in b/s
  std::vector<std::string> switches_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, QpTracks> qps_;  // by host and QP number
  std::deque<PauseTrack> pauses_;
  std::map<std::pair<std::uint32_t, std::uint8_t>, PauseTrack*> paused_ports_;  // by host and priority
  // By switch and port.
  std::vector<std::vector<std::array<QueueTracks, kPriorities>>> queues_;
};

}  // namespace rnicsim::sim
