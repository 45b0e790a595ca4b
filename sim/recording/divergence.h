// How two traces' first difference is told: what led to it, and in what two events differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/recording/format.h"

namespace rnicsim::sim {

inline constexpr std::size_t kShownAhead = 4;       // events of the QP behind the divergence
inline constexpr std::size_t kSearchedAhead = 256;  // events searched for those

// The last events of each QP, and of each host.
class EventHistory {
 public:
  void add(const TraceEvent& event);
  // A line each, of the event's QP, or of its host.
  std::string text(const TraceEvent& event, std::span<const std::string> hosts) const;

 private:
  class Ring {
   public:
    void add(const TraceEvent& event);
    void append_text(std::string& out, std::span<const std::string> hosts) const;

   private:
    std::vector<TraceEvent> events_;
    std::size_t oldest_ = 0;
  };
  using Place = std::uint64_t;  // host, QP: 32 bits each
  static Place place_of(std::uint32_t host, std::uint32_t qp) { return Place{host} << 32 | qp; }

  std::unordered_map<Place, Ring> qps_;
  std::unordered_map<std::uint32_t, Ring> hosts_;
};

// "QP 0x41 of h0", or "h0".
std::string owner_text(const TraceEvent& event, std::span<const std::string> hosts);
// "+1 ns"
std::string signed_time(Duration from, Duration to);
// "psn 5 -> 6, msn 2 -> 3" of two events of the same kind; empty: in none.
std::string differing_fields(const TraceEvent& a, const TraceEvent& b);

}  // namespace rnicsim::sim
