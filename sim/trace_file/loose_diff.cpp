// SPDX-License-Identifier: Apache-2.0
#include "sim/trace_file/loose_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <compare>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/trace_file/divergence.h"

namespace rnicsim::sim {
namespace {

constexpr std::size_t kMostAside = 1 << 20;  // limits memory: events by which B may be ahead of A

struct Stream {
  std::uint32_t host;
  EventKind kind;
  std::optional<std::uint32_t> qp;
  std::vector<std::uint64_t> content;  // fields of an event without QP, except durations
  auto operator<=>(const Stream&) const = default;
};

Stream stream_of(const TraceEvent& event, bool by_kind) {
  Stream stream{event.host, event.kind, qp_of(event), {}};
  if (stream.qp && !by_kind) stream.kind = EventKind::end;
  if (stream.qp) return stream;
  const auto& fields = info(event.kind).fields;
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (fields[i].style != FieldStyle::duration) stream.content.push_back(event.fields[i]);
  return stream;
}

bool earlier(const TraceEvent& a, const TraceEvent& b) { return a.at < b.at; }

class LooseComparison {
 public:
  // nullopt as tolerance: times do not count, but the order of all events of a QP does.
  LooseComparison(TraceReader& a, TraceReader& b, const std::optional<TimeTolerance>& tolerance)
      : a_(a), b_(b), tolerance_(tolerance) {}

  // nullopt: no difference.
  std::optional<Divergence> find() {
    while (const auto event = a_.next()) {
      const auto counterpart = take_counterpart(*event);
      if (!counterpart) return tell(*event, fmt::format("B has no such {}", info(event->kind).name), nullptr);
      if (const auto what = difference(*event, *counterpart)) return tell(*event, *what, &*counterpart);
      history_.add(*event);
      ++events_;
    }
    return surplus();
  }
  std::uint64_t events() const { return events_; }

 private:
  struct Instant {
    Duration a, b;
  };

  void put_aside(const TraceEvent& event) {
    waiting_[stream_of(event, tolerance_.has_value())].push_back(event);
    ++aside_;
  }

  // Next event of the same stream in B; nullopt: none.
  std::optional<TraceEvent> take_counterpart(const TraceEvent& event) {
    const auto stream = stream_of(event, tolerance_.has_value());
    auto found = waiting_.find(stream);
    while (found == waiting_.end()) {
      const auto next = aside_ < kMostAside ? b_.next() : std::nullopt;
      if (!next) return std::nullopt;
      put_aside(*next);
      found = waiting_.find(stream);
    }
    const auto taken = found->second.front();
    found->second.pop_front();
    if (found->second.empty()) waiting_.erase(found);
    --aside_;
    return taken;
  }

  std::optional<std::string> difference(const TraceEvent& a, const TraceEvent& b) {
    if (a.kind != b.kind) return "another event";
    auto close = b;
    const auto& fields = info(a.kind).fields;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (fields[i].style != FieldStyle::duration) continue;
      const Duration expected{std::int64_t(a.fields[i])}, is{std::int64_t(b.fields[i])};
      if (within(expected, is)) close.fields[i] = a.fields[i];
    }
    if (auto what = differing_fields(a, close); !what.empty()) return what;
    const auto qp = qp_of(a);
    if (!qp || !tolerance_) return std::nullopt;
    auto& before = before_[{a.host, *qp}];
    const auto expected = a.at - before.a, is = b.at - before.b;
    if (!within(expected, is))
      return fmt::format("{}: {} after the event before in A, {} in B; {} may differ", signed_time(expected, is),
                         signed_time({}, expected), signed_time({}, is), to_string(tolerance_->allowed(expected)));
    before = {a.at, b.at};
    return std::nullopt;
  }

  bool within(Duration expected, Duration is) const {
    if (!tolerance_) return true;
    // Unsigned arithmetic: a file may hold any number, and a signed difference could overflow.
    const auto a = std::uint64_t(expected.ps), b = std::uint64_t(is.ps);
    return (expected < is ? b - a : a - b) <= std::uint64_t(tolerance_->allowed(expected).ps);
  }

  // Events of B without a counterpart in A.
  std::optional<Divergence> surplus() {
    std::optional<TraceEvent> first;
    for (const auto& [stream, events] : waiting_)
      if (!first || earlier(events.front(), *first)) first = events.front();
    std::uint64_t count = aside_;
    for (; const auto next = b_.next(); ++count)
      if (!first) first = next;
    if (!first) return std::nullopt;
    auto told = begin(*first, fmt::format("B has {} event(s) that A lacks", count));
    told.b.events = {to_text(*first, a_.header().hosts)};
    told.b_at = first->at;
    return told;
  }

  Divergence begin(const TraceEvent& event, std::string what) {
    const auto& hosts = a_.header().hosts;
    Divergence told;
    told.what = std::move(what);
    told.heading = fmt::format("the last events of {} in A", owner_text(event, hosts));
    told.before = history_.lines(event, hosts);
    told.origin = event;
    told.previous = history_.last(event);
    return told;
  }

  Divergence tell(const TraceEvent& a, const std::string& what, const TraceEvent* b) {
    const auto& hosts = a_.header().hosts;
    auto told = begin(a, fmt::format("event {}: {}", events_, what));
    told.a.events = following(a, to_text(a, hosts), read_ahead(a_));
    told.a_at = a.at;
    std::vector<TraceEvent> rest = read_ahead(b_);
    for (const auto& [stream, events] : waiting_) rest.insert(rest.end(), events.begin(), events.end());
    std::ranges::stable_sort(rest, earlier);
    told.b.events = following(a, b ? to_text(*b, hosts) : "no such event", rest);
    if (b) told.b_at = b->at;
    return told;
  }

  std::vector<TraceEvent> read_ahead(TraceReader& reader) {
    std::vector<TraceEvent> events;
    try {
      while (events.size() < kSearchedAhead) {
        const auto event = reader.next();
        if (!event) break;
        events.push_back(*event);
      }
    } catch (const TraceError&) {
      // The traces differ before the damage, so the result stands.
    }
    return events;
  }

  std::vector<std::string> following(const TraceEvent& event, std::string first,
                                     const std::vector<TraceEvent>& events) {
    std::vector<std::string> lines{std::move(first)};
    for (const auto& next : events) {
      if (next.host != event.host || qp_of(next) != qp_of(event)) continue;
      if (lines.size() > kShownAhead) break;
      lines.push_back(to_text(next, a_.header().hosts));
    }
    return lines;
  }

  TraceReader& a_;
  TraceReader& b_;
  const std::optional<TimeTolerance> tolerance_;
  std::map<Stream, std::deque<TraceEvent>> waiting_;  // events of B without a counterpart yet; no queue is empty
  std::size_t aside_ = 0;                             // number of events in waiting_
  std::map<std::pair<std::uint32_t, std::uint32_t>, Instant> before_;
  EventHistory history_;
  std::uint64_t events_ = 0;
};

}  // namespace

Duration TimeTolerance::allowed(Duration expected) const {
  const double share = relative * std::abs(double(expected.ps));
  return std::max(absolute, Duration{std::llround(share)});
}

namespace {

TraceDifference compare_by(TraceReader& a, TraceReader& b, const std::optional<TimeTolerance>& tolerance) {
  auto result = begin_difference(a, b);
  LooseComparison comparison(a, b, tolerance);
  if (auto first = comparison.find())
    set_divergence(result, std::move(*first));
  else
    result.events = fmt::format("equal {}: {} events\n", tolerance ? "within the tolerance" : "in their order",
                                comparison.events());
  return result;
}

}  // namespace

TraceDifference compare_traces_loosely(TraceReader& a, TraceReader& b, const TimeTolerance& tolerance) {
  return compare_by(a, b, tolerance);
}

TraceDifference compare_order(TraceReader& a, TraceReader& b) { return compare_by(a, b, std::nullopt); }

}  // namespace rnicsim::sim
