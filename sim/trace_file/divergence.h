// SPDX-License-Identifier: Apache-2.0
// Describes the first difference of two traces: the events before it, and the fields in which two events differ.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/trace_file/format.h"

namespace rnicsim::sim {

inline constexpr std::size_t kShownAhead = 4;       // number of the QP's events shown after the divergence
inline constexpr std::size_t kSearchedAhead = 256;  // number of events searched for them

// The last events of each QP and of each host.
class EventHistory {
 public:
  EventHistory() = default;
  EventHistory(const EventHistory&) = delete;
  EventHistory& operator=(const EventHistory&) = delete;

  void add(const TraceEvent& event);
  // The last events of the event's QP (of its host, if there is no QP), one line each.
  std::vector<std::string> lines(const TraceEvent& event, std::span<const std::string> hosts) const;
  // The last of these events.
  std::optional<TraceEvent> last(const TraceEvent& event) const;

 private:
  class Ring {
   public:
    void add(const TraceEvent& event);
    std::vector<std::string> lines(std::span<const std::string> hosts) const;
    bool empty() const { return events_.empty(); }
    const TraceEvent& last() const { return events_[(oldest_ + events_.size() - 1) % events_.size()]; }

   private:
    std::vector<TraceEvent> events_;
    std::size_t oldest_ = 0;
  };
  using Place = std::uint64_t;  // host, QP: 32 bits each
  static Place place_of(std::uint32_t host, std::uint32_t qp) { return Place{host} << 32 | qp; }

  // nullptr: no such event was added.
  const Ring* ring_of(const TraceEvent& event) const;

  struct Recent {
    Place place = 0;
    Ring* ring = nullptr;  // in qps_, whose elements keep their places
  };

  std::unordered_map<Place, Ring> qps_;
  std::array<Recent, 1024> recent_{};
  std::vector<Ring> hosts_;
};

// The first difference of two traces, A and B, with the events around it as lines.
struct Divergence {
  struct Side {
    std::vector<std::string> events;  // the event that differs, and later events of its QP or host
    std::string none;                 // printed when `events` is empty; empty: nothing is printed
  };
  std::string what;                 // "event 208: time +1 ns"
  std::string heading;              // heading of `before`: "the last events of h0, the same in both"
  std::vector<std::string> before;  // the last events of the same QP or host
  Side a, b;
  // Source of the difference: the earlier of the two events that differ. For a frame that was received at another time
  // because it was sent at another time: the sending event. nullopt: only the traces' ends differ.
  std::optional<TraceEvent> origin;
  std::optional<TraceEvent> previous;  // last event of the origin's QP or host before it
  std::optional<Duration> a_at, b_at;  // time of the differing event in each trace
};
std::string to_text(const Divergence& divergence);

// QP or host of the event: "QP 0x41 of h0", or "h0".
std::string owner_text(const TraceEvent& event, std::span<const std::string> hosts);
// Difference of two times with its sign: "+1 ns".
std::string signed_time(Duration from, Duration to);
// Differing fields of two events of the same kind: "psn 5 -> 6, msn 2 -> 3"; empty: no field differs.
std::string differing_fields(const TraceEvent& a, const TraceEvent& b);

}  // namespace rnicsim::sim
