// SPDX-License-Identifier: Apache-2.0
#include "sim/recording/event_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "sim/adapter.h"
#include "sim/os/progress_line.h"

namespace rnicsim::sim {
namespace {

std::vector<std::string> labels(const System& system) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < system.adapters(); ++i) names.push_back(system.adapter(i).label());
  return names;
}

}  // namespace

EventLog::EventLog(System& system, const std::vector<LogChoice>& choices)
    : shown_(shown_kinds(choices)), hosts_(labels(system)), recorder_(system, *this, Addresses::shown) {}

bool EventLog::shows(const std::vector<LogChoice>& choices) {
  const auto shown = shown_kinds(choices);
  return std::ranges::find(shown, true) != shown.end();
}

void EventLog::write(const TraceEvent& event) {
  if (!shown_[static_cast<std::size_t>(event.kind)]) return;
  progress_line::erase();
  fmt::print(stderr, "{}\n", to_text(event, hosts_));
}

}  // namespace rnicsim::sim
