// How two traces' first difference is told: what led to it, and in what two events differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "sim/recording/format.h"

namespace rnicsim::sim {

inline constexpr std::size_t kShownAhead = 4;       // events of the QP behind the divergence
inline constexpr std::size_t kSearchedAhead = 256;  // events searched for those

// The last events of each QP, and of each host.
class EventHistory {
 public:
  void add(const TraceEvent& event);
  const std::deque<TraceEvent>& of(std::uint32_t host, std::optional<std::uint32_t> qp) {
    return qp ? qps_[{host, *qp}] : hosts_[host];
  }
  // A line each, of the event's QP, or of its host.
  std::string text(const TraceEvent& event, std::span<const std::string> hosts);

 private:
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<TraceEvent>> qps_;
  std::map<std::uint32_t, std::deque<TraceEvent>> hosts_;
};

// "QP 0x41 of h0", or "h0".
std::string owner_text(const TraceEvent& event, std::span<const std::string> hosts);
// "+1 ns"
std::string signed_time(Duration from, Duration to);
// "psn 5 -> 6, msn 2 -> 3" of two events of the same kind; empty: in none.
std::string differing_fields(const TraceEvent& a, const TraceEvent& b);

}  // namespace rnicsim::sim
