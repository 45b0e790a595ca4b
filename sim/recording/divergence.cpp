#include "sim/recording/divergence.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rnicsim::sim {
namespace {

constexpr std::size_t kHistory = 8;

void keep(std::deque<TraceEvent>& events, const TraceEvent& event) {
  if (events.size() == kHistory) events.pop_front();
  events.push_back(event);
}

}  // namespace

void EventHistory::add(const TraceEvent& event) {
  if (const auto qp = qp_of(event)) keep(qps_[{event.host, *qp}], event);
  keep(hosts_[event.host], event);
}

std::vector<std::string> EventHistory::lines(const TraceEvent& event, std::span<const std::string> hosts) {
  std::vector<std::string> lines;
  for (const auto& before : of(event.host, qp_of(event))) lines.push_back(to_text(before, hosts));
  return lines;
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
