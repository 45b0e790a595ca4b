// How two traces' first difference is told: what led to it, and in what two events differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
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
  std::vector<std::string> lines(const TraceEvent& event, std::span<const std::string> hosts) const;
  // The last one of these.
  std::optional<TraceEvent> last(const TraceEvent& event) const;

 private:
  class Ring {
   public:
    void add(const TraceEvent& event);
    std::vector<std::string> lines(std::span<const std::string> hosts) const;
    const TraceEvent& last() const { return events_[(oldest_ + events_.size() - 1) % events_.size()]; }

   private:
    std::vector<TraceEvent> events_;
    std::size_t oldest_ = 0;
  };
  using Place = std::uint64_t;  // host, QP: 32 bits each
  static Place place_of(std::uint32_t host, std::uint32_t qp) { return Place{host} << 32 | qp; }

  // nullptr: there was no such event.
  const Ring* ring_of(const TraceEvent& event) const;

  std::unordered_map<Place, Ring> qps_;
  std::unordered_map<std::uint32_t, Ring> hosts_;
};

// The first difference of two traces, A and B, with the events around it as lines.
struct Divergence {
  struct Side {
    std::vector<std::string> events;  // the event that differs, and events of its QP or host behind
    std::string none;                 // printed when there are no events; empty: nothing
  };
  std::string what;                 // "event 208: time +1 ns"
  std::string heading;              // of `before`: "the last events of h0, the same in both"
  std::vector<std::string> before;  // the last events of the same QP or host
  Side a, b;
  // The source of the difference: the earlier one of the two events that differ. If a frame was received at another
  // time because it was sent at another time, the event of sending. nullopt: only the ends differ.
  std::optional<TraceEvent> origin;
  std::optional<TraceEvent> previous;  // the last one of the origin's QP or host
  std::optional<Duration> a_at, b_at;  // when the event that differs is in each
};
std::string to_text(const Divergence& divergence);

// "QP 0x41 of h0", or "h0".
std::string owner_text(const TraceEvent& event, std::span<const std::string> hosts);
// "+1 ns"
std::string signed_time(Duration from, Duration to);
// "psn 5 -> 6, msn 2 -> 3" of two events of the same kind; empty: in none.
std::string differing_fields(const TraceEvent& a, const TraceEvent& b);

}  // namespace rnicsim::sim
