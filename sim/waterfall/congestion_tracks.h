// Congestion over time, for a timeline: the rate of each queue pair that has a congestion control, the queues of
// switches, and who is paused. A subscriber of the trace points.
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

// 1 while a priority of a port is paused, else 0. No trace point tells that a pause has run out: the track computes the
// end.
class PauseTrack {
 public:
  PauseTrack(CounterTracks& tracks, CounterTrack& track) : tracks_(tracks), track_(track) { tracks.add(track, {}, 0); }
  void pause(Duration at, Duration until);
  // Adds the end of the last pause, if the pause has run out by `at`.
  void settle(Duration at);

 private:
  CounterTracks& tracks_;
  CounterTrack& track_;
  Duration until_{};
};

class CongestionTracks {
 public:
  // Subscribes to every NIC and switch; to be made before any process of the simulation, and to stay as long as the
  // system. `most`: samples of all tracks together.
  CongestionTracks(System& system, std::size_t most);
  CongestionTracks(const CongestionTracks&) = delete;
  CongestionTracks& operator=(const CongestionTracks&) = delete;

  // Lines of the trace-event format, with a comma at the end of each: the tracks whose value changed, and the names of
  // the switches as processes. Hosts have the process numbers from 1 on, switches the numbers behind them.
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
  std::vector<double> lines_;        // by host: bits a second
  std::vector<std::string> switches_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, QpTracks> qps_;  // by host and number
  std::deque<PauseTrack> pauses_;
  std::map<std::pair<std::uint32_t, std::uint8_t>, PauseTrack*> paused_ports_;  // by host and priority
  // By switch and port.
  std::vector<std::vector<std::array<QueueTracks, kPriorities>>> queues_;
};

}  // namespace rnicsim::sim
