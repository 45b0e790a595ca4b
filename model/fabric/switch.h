// An Ethernet switch without blocking: a frame leaves by the port behind which its destination is, after a latency and
// after the frames that wait there already. It knows MAC addresses from the topology, and drops what is for no one.
// What is for a group leaves by every port of the topology's tree but that by which it came: nobody tells it who
// listens.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "model/base/delay_line.h"
#include "model/base/frame.h"
#include "model/base/params.h"
#include "model/base/stats.h"
#include "model/base/stream.h"

namespace rnicsim::fabric {

using namespace rnicsim::literals;

struct SwitchParams {
  Duration latency = 300_ns;

  void describe(ParamVisitor& visit) {
    visit.param("latency", latency, "first bit in to first bit out of an idle port; docs/timing.md", {0, 1e12});
  }
};

// What a frame takes at a port: all ports of a fabric are alike.
struct LineTiming {
  BitRate rate = 100_Gbps;
  ByteCount overhead{24};
  ByteCount least_frame{60};
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
  Switch(sc_core::sc_module_name name, const SwitchParams& params, const LineTiming& timing, std::size_t ports);

  Output<Frame>& out(std::size_t port) { return ports_[port]->out; }
  // Frames for this MAC address leave by that port.
  void learn(const std::uint8_t (&mac)[6], std::size_t port);

  // Frames for groups leave by that port, too: without a loop through all switches.
  void flood(std::size_t port) { flooded_.push_back(port); }

  // From the cable of that port: its last bit arrives in so long. Cables of one latency keep the order of arrival.
  void receive(std::size_t from, Frame&& frame, Duration delay);

  const SwitchCounters& counters() const { return counters_; }

 private:
  void receive_for_group(std::size_t from, const Frame& frame, Duration ready);
  void send(std::size_t port, Frame&& frame, Duration ready);

  const SwitchParams params_;
  std::vector<std::unique_ptr<SwitchPort>> ports_;
  std::unordered_map<std::uint64_t, std::size_t> port_of_;  // by MAC address
  std::vector<std::size_t> flooded_;
  SwitchCounters counters_;
};

}  // namespace rnicsim::fabric
