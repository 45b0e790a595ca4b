// SPDX-License-Identifier: Apache-2.0
// Boundary between the parts of a system that several processes simulate. Each process builds the whole system, but
// simulates only its own hosts and switches. A frame on a cable to another process's node is sent there with its
// arrival time. Such a frame takes at least the cable's latency, so the processes need to synchronise only once in the
// shortest latency of the cut cables (conservative windows, Chandy and Misra).
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

// Collects notes of which each process has a part; the first process combines all parts.
class Reporter {
 public:
  virtual Message report() = 0;                              // notes since the last report
  virtual void take(std::span<const std::byte> report) = 0;  // report of another process
  virtual void all_told() = 0;                               // all reports up to now have arrived

 protected:
  ~Reporter() = default;
};

class Boundary {
 public:
  using Receive = std::function<void(Frame&&, Duration)>;

  // `peers` must outlive the boundary.
  Boundary(Peers& peers, const Config& config);

  std::uint32_t rank() const { return peers_.rank(); }
  std::uint32_t owner(std::uint32_t node) const { return owners_[node]; }
  bool is_here(std::uint32_t node) const { return owners_[node] == rank(); }
  bool cuts(std::uint32_t cable) const;
  // Longest simulated time between two exchanges.
  Duration window() const { return window_; }

  // --- Cables that are cut, by number and by the end at which frames come out.
  void connect(std::uint32_t cable, std::uint32_t end, Receive receive);
  void send(std::uint32_t cable, std::uint32_t end, const Frame& frame, Duration delay);

  // Present time; during the delivery of another process's frame: the time when that process sent it.
  Duration time() const { return handing_.value_or(now()); }

  // All processes must add the same number of reporters in the same order. Reporters take part in each exchange and
  // must outlive the boundary's use.
  void add(Reporter& reporter) { reporters_.push_back(&reporter); }

  // --- Collective operations: all processes call them at the same simulated time.
  // Exchanges frames and reports. Returns true if `own` is true in any process. `failure`: replaced by the failure of
  // the first process that has one; "": none.
  bool any(bool own, std::string& failure);
  // The same exchange without a vote.
  void meet();
  // Failure of the first process that has one; "": none.
  std::string first_failure(const std::string& own);
  // Rank 0 gets the messages of all processes; the others get nothing.
  std::vector<Message> gather(Message own);

 private:
  std::vector<Message> swap(const std::string& failure, bool vote);

  Peers& peers_;
  const Topology& topology_;
  std::vector<std::uint32_t> owners_;
  Duration window_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Receive> receivers_;
  std::vector<Message> frames_;  // by destination process
  std::optional<Duration> handing_;
  std::vector<Reporter*> reporters_;
};

}  // namespace rnicsim::sim
