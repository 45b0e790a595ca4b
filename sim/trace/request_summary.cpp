// SPDX-License-Identifier: Apache-2.0
#include "sim/trace/request_summary.h"

#include <algorithm>

#include "model/abi/queue.h"
#include "sim/trace/queue_pair_events.h"

namespace rnicsim::sim {

void RequestSummary::add(const TraceEvent& event) {
  if (event.kind == EventKind::wqe && is_send_queue(event)) take(event);
  if (event.kind == EventKind::cqe && is_requesters(event)) complete(event);
}

RequestSummary::QueuePair& RequestSummary::queue_pair(const TraceEvent& event) {
  return qps_[{event.host, static_cast<std::uint32_t>(qp_of(event).value_or(0))}];
}

void RequestSummary::take(const TraceEvent& event) {
  auto& qp = queue_pair(event);
  for (auto* totals : {&qp.totals, &hosts_[event.host]}) {
    ++totals->posted;
    if (!totals->first) totals->first = event.at;
  }
  qp.pending.push_back({value_of(event, field::index), value_of(event, field::bytes), value_of(event, field::opcode),
                        value_of(event, field::signaled) != 0, event.at});
}

// A CQE also completes the unsignaled WQEs before its own.
void RequestSummary::complete(const TraceEvent& event) {
  auto& qp = queue_pair(event);
  const auto found = std::ranges::find(qp.pending, value_of(event, field::wqe_counter), &TakenWqe::index);
  if (found == qp.pending.end()) return;
  const bool is_good = value_of(event, field::syndrome) == std::uint64_t(abi::CqeSyndrome::success);
  for (auto* totals : {&qp.totals, &hosts_[event.host]}) {
    if (!is_good) break;
    totals->last = event.at;
    for (auto wqe = qp.pending.begin(); wqe != found + 1; ++wqe) {
      ++totals->messages;
      totals->bytes += wqe->bytes;
    }
    if (found->signaled) totals->latencies[found->opcode].add(event.at - found->at);
  }
  qp.pending.erase(qp.pending.begin(), found + 1);
}

}  // namespace rnicsim::sim
