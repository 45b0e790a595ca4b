#include "sim/recording/divergence.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

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

std::string EventHistory::text(const TraceEvent& event, std::span<const std::string> hosts) {
  std::string text;
  for (const auto& before : of(event.host, qp_of(event))) text += fmt::format("      {}\n", to_text(before, hosts));
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
