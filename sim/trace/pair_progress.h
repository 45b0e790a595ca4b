// A queue pair at each time of a trace: state, PSNs, and requests under way.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "sim/trace/queue_pair_events.h"

namespace rnicsim::sim {

class PairProgress {
 public:
  // An event of this queue pair. True: something has changed.
  bool add(const TraceEvent& event);

  const std::string& state() const { return state_; }  // "?" until the trace tells
  std::uint32_t sent_psn() const { return sent_.value_or(0); }                  // the highest that was sent
  std::uint32_t acknowledged_psn() const { return acknowledged_.value_or(0); }  // the highest
  // PSNs that were sent and not acknowledged.
  std::uint32_t outstanding_psns() const;
  // WQEs of the send queue that the engine has taken, up to their CQE or that of a later one.
  std::uint32_t outstanding_wqes() const { return std::uint32_t(wqes_.size()); }

 private:
  bool add_wqe(const TraceEvent& event);
  bool add_cqe(const TraceEvent& event);
  bool add_sent(const TraceEvent& event);
  bool add_received(const TraceEvent& event);

  std::string state_ = "?";
  std::optional<std::uint32_t> sent_, acknowledged_;
  std::deque<std::uint64_t> wqes_;  // their indexes
};

}  // namespace rnicsim::sim
