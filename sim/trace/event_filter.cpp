// SPDX-License-Identifier: Apache-2.0
#include "sim/trace/event_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "sim/config/config_error.h"

namespace rnicsim::sim {
namespace {

bool fits(std::string_view pattern, std::string_view name) {
  if (!pattern.ends_with('*')) return pattern == name;
  pattern.remove_suffix(1);
  return name.starts_with(pattern);
}

}  // namespace

EventFilter::EventFilter(const FilterOptions& options, const TraceHeader& header)
    : hosts_(header.hosts.size(), options.hosts.empty()),
      qps_(options.qps.begin(), options.qps.end()),
      psns_(options.psns.begin(), options.psns.end()),
      from_(options.from),
      to_(options.to) {
  for (const auto& name : options.hosts) {
    const auto found = std::ranges::find(header.hosts, name);
    if (found == header.hosts.end()) throw ConfigError(fmt::format("--host: the trace has no host '{}'", shown(name)));
    hosts_[std::size_t(found - header.hosts.begin())] = true;
  }
  for (const auto& pattern : options.kinds) {
    const auto before = kinds_;
    for (std::size_t kind = 1; kind < kEventKinds; ++kind)
      if (fits(pattern, info(EventKind(kind)).name)) kinds_.set(kind);
    if (kinds_ == before) throw ConfigError(fmt::format("--kind: unknown kind of event '{}'", shown(pattern)));
  }
  if (options.kinds.empty()) kinds_.set();
}

bool EventFilter::takes(const TraceEvent& event) const {
  static const NamedField psn_field("psn");
  if (!kinds_[std::size_t(event.kind)] || (from_ && event.at < *from_) || (to_ && event.at > *to_)) return false;
  if (!hosts_[event.host]) return false;
  if (!qps_.empty()) {
    const auto qp = qp_of(event);
    if (!qp || !qps_.contains(*qp)) return false;
  }
  if (psns_.empty()) return true;
  const auto psn = psn_field.of(event);
  return psn && psns_.contains(static_cast<std::uint32_t>(*psn));
}

std::vector<bool> EventFilter::blocks(const TraceIndex& index) const {
  const auto& blocks = index.blocks();
  std::vector<bool> chosen(blocks.size(), qps_.empty());
  for (const auto qp : qps_)
    for (std::size_t host = 0; host < hosts_.size(); ++host) {
      if (!hosts_[host]) continue;
      for (const auto& range : index.blocks_of(std::uint32_t(host), qp))
        std::fill(chosen.begin() + range.begin, chosen.begin() + range.end, true);
    }
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if ((from_ && blocks[i].last < *from_) || (to_ && blocks[i].first > *to_)) chosen[i] = false;
  return chosen;
}

}  // namespace rnicsim::sim
