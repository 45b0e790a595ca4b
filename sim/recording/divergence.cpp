#include "sim/recording/divergence.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace rnicsim::sim {
namespace {

constexpr std::size_t kHistory = 8;

}  // namespace

void EventHistory::Ring::add(const TraceEvent& event) {
  if (events_.size() < kHistory) return events_.push_back(event);
  events_[oldest_] = event;
  oldest_ = (oldest_ + 1) % kHistory;
}

void EventHistory::Ring::append_text(std::string& out, std::span<const std::string> hosts) const {
  for (std::size_t i = 0; i < events_.size(); ++i) {
    out += "      ";
    sim::append_text(out, events_[(oldest_ + i) % events_.size()], hosts);
    out += '\n';
  }
}

void EventHistory::add(const TraceEvent& event) {
  if (const auto qp = qp_of(event)) qps_[place_of(event.host, *qp)].add(event);
  hosts_[event.host].add(event);
}

std::string EventHistory::text(const TraceEvent& event, std::span<const std::string> hosts) const {
  std::string text;
  const auto append = [&](const auto& rings, auto key) {
    if (const auto found = rings.find(key); found != rings.end()) found->second.append_text(text, hosts);
  };
  if (const auto qp = qp_of(event))
    append(qps_, place_of(event.host, *qp));
  else
    append(hosts_, event.host);
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
