// SPDX-License-Identifier: Apache-2.0
// Rates and latencies of a trace's requests: WQEs of send queues, from the engine's taking of a WQE to its CQE.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/results/histogram.h"
#include "sim/trace_file/format.h"

namespace rnicsim::sim {

// Totals of one queue pair, or of all queue pairs of a host.
struct RequestTotals {
  std::uint64_t posted = 0;                      // WQEs that the engine took
  std::uint64_t messages = 0, bytes = 0;         // WQEs that completed without an error
  std::optional<Duration> first;                 // time of the first WQE
  Duration last{};                               // time of the last CQE without an error
  std::map<std::uint64_t, Histogram> latencies;  // by opcode, for signaled WQEs

  Duration interval() const { return first && last > *first ? last - *first : Duration{}; }
};

class RequestSummary {
 public:
  explicit RequestSummary(std::size_t hosts) : hosts_(hosts) {}

  void add(const TraceEvent& event);

  const std::vector<RequestTotals>& hosts() const { return hosts_; }
  // In the order of host and number. Includes queue pairs with receives only.
  template <class Visit>
  void each_queue_pair(Visit&& visit) const {
    for (const auto& [where, qp] : qps_) visit(where.first, where.second, qp.totals);
  }

 private:
  struct TakenWqe {
    std::uint64_t index, bytes, opcode;
    bool signaled;
    Duration at;
  };
  struct QueuePair {
    RequestTotals totals;
    std::deque<TakenWqe> pending;
  };

  QueuePair& queue_pair(const TraceEvent& event);
  void take(const TraceEvent& event);
  void complete(const TraceEvent& event);

  std::vector<RequestTotals> hosts_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, QueuePair> qps_;
};

}  // namespace rnicsim::sim
