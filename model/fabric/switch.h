// An Ethernet switch without blocking: a frame leaves by a port that leads to its destination, after a latency and
// after the frames that wait there already. Of several ports it takes one by the frame's flow (flow_hash.h). It knows
// MAC addresses and ways from the topology, and drops what is for no one. What is for a group leaves by every port of
// the topology's tree but that by which it came: nobody tells it who listens.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model/base/delay_line.h"
#include "model/base/frame.h"
#include "model/base/params.h"
#include "model/base/stats.h"
#include "model/base/stream.h"
#include "model/fabric/stations.h"

namespace rnicsim::fabric {

using namespace rnicsim::literals;

struct SwitchParams {
  Duration latency = 300_ns;

  void describe(ParamVisitor& visit) {
    visit.param("latency", latency, "first bit in to first bit out of an idle port; docs/timing.md", {0, 1e12});
  }
};

// What a frame takes at a port.
struct LineTiming {
  BitRate rate = 100_Gbps;
  ByteCount overhead{24};
  ByteCount least_frame{60};

  Duration time_for(const Frame& frame) const {
    return rate.time_for({std::max<std::uint64_t>(frame.size(), least_frame.bytes) + overhead.bytes});
  }
  bool operator==(const LineTiming&) const = default;
};

// A switch's place in the topology.
struct SwitchWiring {
  struct Line {
    LineTiming timing;
    Duration latency;  // of its cable
  };
  std::uint32_t number = 0;  // among the switches, as in Stations::Place
  std::vector<Line> lines;   // by port
  std::shared_ptr<const Stations> stations;
  // The ports of the shortest ways to another switch: ways[way_to[its number]]; none: there is no way.
  std::vector<std::uint16_t> way_to;
  std::vector<std::vector<std::uint16_t>> ways;
  std::vector<std::uint16_t> flooded;  // the ports by which frames for groups leave: without a loop
};

struct SwitchCounters {
  Counter frames = 0;
  Counter bytes = 0;
  Counter unknown = 0;
  Counter most_waiting = 0;

  void describe(CounterVisitor& visit) const {
    visit.counter("frames", frames, "frames", "frames forwarded");
    visit.counter("bytes", bytes, "bytes", "bytes of them, without FCS");
    visit.counter("unknown", unknown, "frames", "dropped: no port leads to their destination");
    visit.most("most_waiting", most_waiting, "frames", "the most that ever were on their way to one port at a time");
  }
};

// A port's way out: frames leave at the port's rate, one after another, as their last bit does.
class SwitchPort : public sc_core::sc_module {
 public:
  SwitchPort(sc_core::sc_module_name name, const LineTiming& timing);

  Output<Frame> out;

  const LineTiming& timing() const { return timing_; }
  // Its last bit could leave at `ready` if the port were idle. Gives the frames that are now on their way.
  std::size_t send(Frame&& frame, Duration ready);

 private:
  void leave_due();

  const LineTiming timing_;
  DelayLine<Frame> leaving_{[this] { leave_due(); }};
  Duration free_;
};

class Switch : public sc_core::sc_module {
 public:
  Switch(sc_core::sc_module_name name, const SwitchParams& params, SwitchWiring wiring);

  Output<Frame>& out(std::size_t port) { return ports_[port]->out; }
  // From the cable of that port: its last bit arrives in so long.
  void receive(std::size_t from, Frame&& frame, Duration delay);

  const SwitchCounters& counters() const { return counters_; }

 private:
  void release_due(std::size_t from);
  void arrive(std::size_t from, Frame&& frame, Duration at);
  void arrive_for_group(std::size_t from, const Frame& frame, Duration at);
  std::optional<std::size_t> way_of(const Frame& frame) const;
  void send(std::size_t from, std::size_t to, Frame&& frame, Duration at);
  Duration ready(std::size_t from, std::size_t to, const Frame& frame, Duration at) const;

  const SwitchParams params_;
  const SwitchWiring wiring_;
  Duration shortest_;  // of the cables
  bool alike_ = true;  // all lines, in their timing
  std::vector<std::unique_ptr<SwitchPort>> ports_;
  std::vector<std::unique_ptr<DelayLine<Frame>>> held_;  // by port; null: its cable is a shortest one
  SwitchCounters counters_;
};

}  // namespace rnicsim::fabric
