// The measurements that decide whether a running flow is steady, added up over the processes of the simulation.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/base/byte_stream.h"
#include "sim/bench/flow_state.h"
#include "sim/bench/steadiness.h"

namespace rnicsim::sim::bench {

// The operations of each sender in the two halves of an interval that ends at `end`; the batches of a sender are
// equally long.
std::vector<SenderCounts> sender_counts(const std::vector<Batches>& of_senders, const std::vector<SenderWork>& work,
                                        Duration end);

// How many receives waited to be polled on average, in each half of an interval.
struct BacklogHalves {
  double early = 0, late = 0;
};
// The areas (Backlog::area_until) are those at three moments.
BacklogHalves backlog_halves(Duration from, double area_from, Duration middle, double area_middle, Duration end,
                             double area_end);

class FlowJudgement {
 public:
  // `stock`: of receives that the flow's receivers keep posted.
  FlowJudgement(const FlowState& flow, BacklogHalves backlog, std::uint64_t stock);

  void put(ByteWriter& out) const;
  void add(ByteReader& in);  // another process's, of the same flow

  // Whether the second half of all that time may be what is measured.
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
