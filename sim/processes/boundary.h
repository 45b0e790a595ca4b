// Where this process's part of the system ends. Each process makes and sets up the whole system, and then simulates
// its own hosts and switches only. A frame that leaves by a cable to another process's node goes there with the time
// when it arrives; it takes the cable's latency, so processes need to meet only as often as the shortest of such cables
// says: conservative windows (Chandy and Misra), in which nobody can miss anything.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/base/frame.h"
#include "model/base/kernel.h"
#include "sim/config/config.h"
#include "sim/processes/peers.h"

namespace rnicsim::sim {

class Boundary {
 public:
  using Receive = std::function<void(Frame&&, Duration)>;

  // `peers` outlives it.
  Boundary(Peers& peers, const Config& config);

  std::uint32_t rank() const { return peers_.rank(); }
  std::uint32_t owner(std::uint32_t node) const { return owners_[node]; }
  bool is_here(std::uint32_t node) const { return owners_[node] == rank(); }
  bool cuts(std::uint32_t cable) const;
  // At most so long from one exchange to the next.
  Duration window() const { return window_; }

  // --- The cables that it cuts, by their number and the end where frames come out.
  void connect(std::uint32_t cable, std::uint32_t end, Receive receive);
  void send(std::uint32_t cable, std::uint32_t end, const Frame& frame, Duration delay);

  // --- With all others, at the same simulated time.
  // What has left arrives. Whether it is so in any process; `failure` ("": none) becomes the first that one has.
  bool any(bool own, std::string& failure);
  // Rank 0 gets what each other has; the others nothing.
  std::vector<Message> gather(Message own);

 private:
  std::vector<Message> swap(const std::string& failure, bool vote);

  Peers& peers_;
  const Topology& topology_;
  std::vector<std::uint32_t> owners_;
  Duration window_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Receive> receivers_;
  std::vector<Message> frames_;  // by process
};

}  // namespace rnicsim::sim
