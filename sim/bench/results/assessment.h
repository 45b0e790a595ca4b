// SPDX-License-Identifier: Apache-2.0
// Measurements that decide whether a running flow is steady, summed over the processes of the simulation.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/base/byte_stream.h"
#include "sim/bench/flow_state.h"
#include "sim/bench/results/steadiness.h"

namespace rnicsim::sim::bench {

// Operations of each sender in the two halves of the interval that ends at `end`. The batches of a sender are equally
// long.
std::vector<SenderCounts> sender_counts(const std::vector<Batches>& of_senders, const std::vector<SenderWork>& work,
                                        Duration end);

// Average number of receives that waited to be polled, in each half of an interval.
struct BacklogHalves {
  double early = 0, late = 0;
};
// The areas are Backlog::area_until() at the three times.
BacklogHalves backlog_halves(Duration from, double area_from, Duration middle, double area_middle, Duration end,
                             double area_end);

class FlowAssessment {
 public:
  // `stock`: number of receives that the flow's receivers keep posted.
  FlowAssessment(const FlowState& flow, BacklogHalves backlog, std::uint64_t stock);

  void put(ByteWriter& out) const;
  void add(ByteReader& in);  // adds the measurements of another process for the same flow

  // True: the second half of the observed time can be the measured interval.
  bool is_steady(Duration now, double level, double well_known) const;

 private:
  Batches all_;   // from the beginning
  Batches late_;  // from the turn on
  std::vector<Batches> of_senders_;
  std::vector<SenderWork> work_;
  BacklogHalves backlog_;
  std::uint64_t stock_;
};

}  // namespace rnicsim::sim::bench
