// SPDX-License-Identifier: Apache-2.0
#include "sim/trace_file/divergence.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rnicsim::sim {
namespace {

constexpr std::size_t kHistory = 8;

}  // namespace

void EventHistory::Ring::add(const TraceEvent& event) {
  if (events_.size() < kHistory) return events_.push_back(event);
  events_[oldest_] = event;
  oldest_ = (oldest_ + 1) % kHistory;
}

std::vector<std::string> EventHistory::Ring::lines(std::span<const std::string> hosts) const {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < events_.size(); ++i)
    lines.push_back(to_text(events_[(oldest_ + i) % events_.size()], hosts));
  return lines;
}

void EventHistory::add(const TraceEvent& event) {
  if (const auto qp = qp_of(event)) {
    const auto place = place_of(event.host, *qp);
    auto& slot = recent_[(*qp ^ event.host << 9) % recent_.size()];
    if (slot.place != place || slot.ring == nullptr) slot = {place, &qps_[place]};
    slot.ring->add(event);
  }
  if (event.host >= hosts_.size()) hosts_.resize(event.host + 1);
  hosts_[event.host].add(event);
}

const EventHistory::Ring* EventHistory::ring_of(const TraceEvent& event) const {
  if (const auto qp = qp_of(event)) {
    const auto found = qps_.find(place_of(event.host, *qp));
    return found != qps_.end() ? &found->second : nullptr;
  }
  return event.host < hosts_.size() && !hosts_[event.host].empty() ? &hosts_[event.host] : nullptr;
}

std::vector<std::string> EventHistory::lines(const TraceEvent& event, std::span<const std::string> hosts) const {
  const Ring* const ring = ring_of(event);
  return ring != nullptr ? ring->lines(hosts) : std::vector<std::string>();
}

std::optional<TraceEvent> EventHistory::last(const TraceEvent& event) const {
  const Ring* const ring = ring_of(event);
  return ring != nullptr ? std::optional(ring->last()) : std::nullopt;
}

std::string to_text(const Divergence& divergence) {
  std::string text = divergence.what + '\n';
  if (!divergence.heading.empty()) text += fmt::format("  {}:\n", divergence.heading);
  for (const auto& line : divergence.before) text += fmt::format("      {}\n", line);
  const auto add = [&text](char letter, const Divergence::Side& side) {
    if (side.events.empty() && !side.none.empty()) text += fmt::format("  {}:  {}\n", letter, side.none);
    for (std::size_t i = 0; i < side.events.size(); ++i)
      text += i == 0 ? fmt::format("  {}:  {}\n", letter, side.events[i]) : fmt::format("      {}\n", side.events[i]);
  };
  add('A', divergence.a);
  add('B', divergence.b);
  return text;
}

std::string owner_text(const TraceEvent& event, std::span<const std::string> hosts) {
  const auto host = event.host < hosts.size() ? hosts[event.host] : fmt::format("host {}", event.host);
  const auto qp = qp_of(event);
  return qp ? fmt::format("QP {:#x} of {}", *qp, host) : host;
}

std::string signed_time(Duration from, Duration to) {
  return to < from ? "-" + to_string(from - to) : "+" + to_string(to - from);
}

std::string differing_fields(const TraceEvent& a, const TraceEvent& b) {
  std::vector<std::string> parts;
  const auto& fields = info(a.kind).fields;
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (a.fields[i] != b.fields[i])
      parts.push_back(
          fmt::format("{} {} -> {}", fields[i].name, to_text(fields[i], a.fields[i]), to_text(fields[i], b.fields[i])));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace rnicsim::sim
