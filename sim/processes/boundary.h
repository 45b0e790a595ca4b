// Where this process's part of the system ends. Each process makes and sets up the whole system, and then simulates
// its own hosts and switches only. A frame that leaves by a cable to another process's node goes there with the time
// when it arrives; it takes the cable's latency, so processes need to meet only as often as the shortest of such cables
// says: conservative windows (Chandy and Misra), in which nobody can miss anything.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/base/frame.h"
#include "model/base/kernel.h"
#include "sim/config/config.h"
#include "sim/processes/peers.h"

namespace rnicsim::sim {

// Of which each process sees a part, and the first puts all together.
class Reporter {
 public:
  virtual Message report() = 0;                              // what it has seen since the last
  virtual void take(std::span<const std::byte> report) = 0;  // another's
  virtual void all_told() = 0;                               // of what is before now

 protected:
  ~Reporter() = default;
};

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

  // Now; or, as a frame of another process is handed to who receives it, when that process sent it.
  Duration time() const { return handing_.value_or(now()); }

  // As many in each process, in the same order; told whenever they meet. It outlives the boundary's use.
  void add(Reporter& reporter) { reporters_.push_back(&reporter); }

  // --- With all others, at the same simulated time.
  // What has left arrives, and what was seen is reported. Whether it is so in any process; `failure` ("": none) becomes
  // the first that one has.
  bool any(bool own, std::string& failure);
  // The same, of nothing.
  void meet();
  // What the first process that has a failure says; "": none has.
  std::string first_failure(const std::string& own);
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
  std::optional<Duration> handing_;
  std::vector<Reporter*> reporters_;
};

}  // namespace rnicsim::sim
