// SPDX-License-Identifier: Apache-2.0
#include "sim/trace_file/trace_diff.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <vector>

#include "sim/trace_file/divergence.h"

namespace rnicsim::sim {
namespace {

constexpr std::size_t kAgreement = 12;  // number of equal events needed after missing events
constexpr std::size_t kMostMissing = 64;

// One trace, from the divergence on.
struct Side {
  TraceReader& reader;
  std::vector<TraceEvent> events;

  void read_ahead() try {
    while (events.size() < kSearchedAhead) {
      const auto event = reader.next();
      if (!event) return;
      events.push_back(*event);
    }
  } catch (const TraceError&) {
    // The traces differ before the damage, so the result stands.
  }
};

// Number of events at the front of `longer` that are missing in `other`; 0: the difference has another form.
std::size_t gap(const std::vector<TraceEvent>& longer, const std::vector<TraceEvent>& other) {
  for (std::size_t count = 1; count <= std::min(kMostMissing, longer.size()); ++count) {
    const auto left = longer.size() - count;
    const auto common = std::min({left, other.size(), kAgreement});
    if (common < kAgreement && left != other.size()) continue;
    if (common == 0 && !other.empty()) continue;
    if (std::equal(other.begin(), other.begin() + std::ptrdiff_t(common), longer.begin() + std::ptrdiff_t(count)))
      return count;
  }
  return 0;
}

std::string time_and_fields(const TraceEvent& a, const TraceEvent& b) {
  const std::string time = a.at != b.at ? fmt::format("time {}", signed_time(a.at, b.at)) : "";
  const auto fields = differing_fields(a, b);
  return time + (time.empty() || fields.empty() ? "" : ", ") + fields;
}

std::string kind_of_difference(const Side& a, const Side& b) {
  if (const auto missing = gap(a.events, b.events)) return fmt::format("B lacks {} event(s) of A", missing);
  if (const auto missing = gap(b.events, a.events)) return fmt::format("B has {} event(s) that A lacks", missing);
  const auto& first = a.events.front();
  const auto& second = b.events.front();
  if (first.kind != second.kind || first.host != second.host) return "another event";
  return time_and_fields(first, second);
}

Divergence::Side side_of(const Side& side, const TraceEvent& event, std::span<const std::string> hosts) {
  if (side.events.empty()) return {{}, "no event: the trace ends here"};
  const auto qp = qp_of(event);
  Divergence::Side shown{{to_text(side.events.front(), hosts)}, {}};
  for (auto next = side.events.begin() + 1; next != side.events.end() && shown.events.size() <= kShownAhead; ++next)
    if (next->host == event.host && (!qp || qp_of(*next) == qp)) shown.events.push_back(to_text(*next, hosts));
  return shown;
}

// A frame's frame_received event is recorded when the frame leaves the sender, before the sender's frame_sent event.
const TraceEvent& origin_of(const std::vector<TraceEvent>& events, const std::vector<TraceEvent>& others) {
  const TraceEvent& first = events.front();
  if (first.kind != EventKind::frame_received) return first;
  const auto sent = std::ranges::find_if(events, [&](const TraceEvent& event) {
    return event.kind == EventKind::frame_sent && event.at == first.at && event.host != first.host &&
           event.fields[0] == first.fields[0];
  });
  const bool differs = sent != events.end() && std::ranges::find(others, *sent) == others.end();
  return differs ? *sent : first;
}

Divergence describe_divergence(Side& a, Side& b, std::uint64_t index, const EventHistory& history) {
  a.read_ahead();
  b.read_ahead();
  const auto& hosts = a.reader.header().hosts;
  const Side& earlier = b.events.empty() || (!a.events.empty() && a.events[0].at <= b.events[0].at) ? a : b;
  const TraceEvent& event = earlier.events.front();
  const TraceEvent& origin = origin_of(earlier.events, &earlier == &a ? b.events : a.events);

  Divergence result;
  result.what = fmt::format("event {}: {}", index, kind_of_difference(a, b));
  result.heading = fmt::format("the last events of {}, the same in both", owner_text(event, hosts));
  result.before = history.lines(event, hosts);
  result.a = side_of(a, event, hosts);
  result.b = side_of(b, event, hosts);
  result.origin = origin;
  result.previous = history.last(origin);
  if (!a.events.empty()) result.a_at = a.events[0].at;
  if (!b.events.empty()) result.b_at = b.events[0].at;
  return result;
}

}  // namespace

std::vector<HeaderDifference> compare_headers(const TraceHeader& a, const TraceHeader& b) {
  std::vector<HeaderDifference> found;
  const auto compare = [&found](const std::string& name, const std::string& left, const std::string& right) {
    if (left != right) found.push_back({name, left, right, false});
  };
  compare("program", a.program, b.program);
  compare("seed", std::to_string(a.seed), std::to_string(b.seed));
  compare("time", a.time, b.time);
  compare("hosts", fmt::format("{}", fmt::join(a.hosts, " ")), fmt::format("{}", fmt::join(b.hosts, " ")));
  compare("commands", fmt::format("{}", fmt::join(a.commands, "; ")), fmt::format("{}", fmt::join(b.commands, "; ")));
  std::map<std::string, std::pair<std::string, std::string>> values;
  for (const auto& [path, value] : a.configuration) values[path].first = value;
  for (const auto& [path, value] : b.configuration) values[path].second = value;
  for (const auto& [path, pair] : values) {
    const auto& [left, right] = pair;
    if (left != right)
      found.push_back({path, left.empty() ? "(none)" : left, right.empty() ? "(none)" : right, true,
                       !left.empty() && !right.empty()});
  }
  return found;
}

TraceDifference begin_difference(const TraceReader& a, const TraceReader& b) {
  TraceDifference result{true, {}, {}, compare_headers(a.header(), b.header()), {}};
  for (const auto& each : result.headers) result.header += fmt::format("  {}: {} | {}\n", each.name, each.a, each.b);
  return result;
}

void set_divergence(TraceDifference& difference, Divergence first) {
  difference.equal = false;
  difference.events = to_text(first);
  difference.first = std::move(first);
}

TraceDifference compare_traces(TraceReader& a, TraceReader& b) {
  auto result = begin_difference(a, b);
  EventHistory history;
  TraceEvent left, right;
  for (std::uint64_t index = 0;; ++index) {
    const bool has_left = a.next(left);
    if (has_left && b.skip_same(a)) {
      history.add(left);
      continue;
    }
    const bool has_right = b.next(right);
    if (has_left && has_right && left == right) {
      history.add(left);
      continue;
    }
    if (!has_left && !has_right) {
      if (a.end() != b.end())
        set_divergence(result, {.what = fmt::format("the events are equal, but A ends at {} and B at {}",
                                                    to_string(a.end()), to_string(b.end()))});
      else
        result.events = fmt::format("equal: {} events\n", index);
      return result;
    }
    Side first{a, {}};
    Side second{b, {}};
    if (has_left) first.events.push_back(left);
    if (has_right) second.events.push_back(right);
    set_divergence(result, describe_divergence(first, second, index, history));
    return result;
  }
}

int diff_traces(const std::string& a, const std::string& b) {
  std::ifstream files[2];
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string& path = i == 0 ? a : b;
    files[i].open(path, std::ios::binary);
    if (files[i]) continue;
    fmt::print(stderr, "rnicsim: {}: {}\n", path, std::strerror(errno));
    return 2;
  }
  try {
    TraceReader first(files[0], a);
    TraceReader second(files[1], b);
    const auto difference = compare_traces(first, second);
    fmt::print("A: {}\nB: {}\n", a, b);
    for (const auto* reader : {&first, &second})
      for (const auto& line : reader->unknown()) fmt::print(stderr, "rnicsim: {}\n", line);
    if (!difference.header.empty()) fmt::print("the headers differ (A | B):\n{}", difference.header);
    fmt::print("{}", difference.events);
    return difference.equal ? 0 : 1;
  } catch (const TraceError& error) {
    fmt::print(stderr, "rnicsim: {}\n", error.what());
    return 2;
  }
}

}  // namespace rnicsim::sim
