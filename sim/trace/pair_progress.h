// SPDX-License-Identifier: Apache-2.0
// Progress of a queue pair along a trace: state, PSNs, and outstanding requests.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "sim/trace/queue_pair_events.h"

namespace rnicsim::sim {

class PairProgress {
 public:
  // Adds an event of this queue pair. True: a value has changed.
  bool add(const TraceEvent& event);

  const std::string& state() const { return state_; }           // "?" before the first change of state in the trace
  std::uint32_t sent_psn() const { return sent_.value_or(0); }  // highest PSN sent
  std::uint32_t acknowledged_psn() const { return acknowledged_.value_or(0); }  // highest PSN acknowledged
  // Number of PSNs sent and not acknowledged.
  std::uint32_t outstanding_psns() const;
  // Number of send WQEs that the engine has taken, and that neither their own CQE nor a later one has completed.
  std::uint32_t outstanding_wqes() const { return std::uint32_t(wqes_.size()); }

 private:
  bool add_wqe(const TraceEvent& event);
  bool add_cqe(const TraceEvent& event);
  bool add_sent(const TraceEvent& event);
  bool add_received(const TraceEvent& event);

  std::string state_ = "?";
  std::optional<std::uint32_t> sent_, acknowledged_;
  std::deque<std::uint64_t> wqes_;  // indexes in the ring
};

}  // namespace rnicsim::sim
