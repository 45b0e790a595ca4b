// SPDX-License-Identifier: Apache-2.0
#include "sim/bench/results/assessment.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace rnicsim::sim::bench {

std::vector<SenderCounts> sender_counts(const std::vector<Batches>& of_senders, const std::vector<SenderWork>& work,
                                        Duration end) {
  std::vector<SenderCounts> senders(of_senders.size());
  for (std::size_t i = 0; i < senders.size(); ++i) {
    const auto counts = of_senders[i].until(end);
    const auto half = static_cast<std::ptrdiff_t>(counts.size() / 2);
    senders[i] = {.first = std::accumulate(counts.begin(), counts.begin() + half, std::uint64_t{0}),
                  .second = std::accumulate(counts.begin() + half, counts.end(), std::uint64_t{0}),
                  .has_work = work[i].posted != work[i].completed,
                  .awaits_ack = work[i].awaits_ack,
                  .awaits_rnr = work[i].awaits_rnr};
  }
  return senders;
}

BacklogHalves backlog_halves(Duration from, double area_from, Duration middle, double area_middle, Duration end,
                             double area_end) {
  const auto mean = [](Duration begin, double area_begin, Duration until, double area_until) {
    return until > begin ? (area_until - area_begin) / static_cast<double>((until - begin).ps) : 0;
  };
  return {mean(from, area_from, middle, area_middle), mean(middle, area_middle, end, area_end)};
}

FlowAssessment::FlowAssessment(const FlowState& flow, BacklogHalves backlog, std::uint64_t stock)
    : all_(*flow.observed),
      late_(flow.batches),
      of_senders_(flow.of_senders),
      work_(flow.work),
      backlog_(backlog),
      stock_(stock) {}

void FlowAssessment::put(ByteWriter& out) const {
  all_.put(out);
  late_.put(out);
  for (const auto& batches : of_senders_) batches.put(out);
  for (const auto& work : work_) out.put(work);
  out.put(backlog_);
}

void FlowAssessment::add(ByteReader& in) {
  all_.add(Batches::take(in));
  late_.add(Batches::take(in));
  for (auto& batches : of_senders_) batches.add(Batches::take(in));
  for (auto& work : work_) work.add(in.take<SenderWork>());
  const auto other = in.take<BacklogHalves>();
  backlog_.early += other.early;
  backlog_.late += other.late;
}

bool FlowAssessment::is_steady(Duration now, double level, double well_known) const {
  const auto late = steadiness_of(late_.until(now), level);
  return has_settled(all_.until(now)) && late.steady.value_or(false) && late.reach.value_or(1) <= well_known &&
         halted_of(sender_counts(of_senders_, work_, now)) == 0 && !fills_up(backlog_.early, backlog_.late, stock_);
}

}  // namespace rnicsim::sim::bench
