#include "sim/rerun/recorded_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "sim/config/config_error.h"

namespace rnicsim::sim::rerun {
namespace {

constexpr std::size_t kMostWordBytes = 64;
constexpr std::size_t kMostWriteBytes = 256;  // of a write to BAR0

}  // namespace

RecordedSteps::RecordedSteps(TraceReader& trace, const std::vector<std::uint32_t>& hosts)
    : hosts_(hosts), requests_(hosts.empty() ? 0 : 1 + *std::ranges::max_element(hosts)) {
  while (const auto event = trace.next()) {
    try {
      if (is_of_software(event->kind)) add(*event);
    } catch (const TraceError& error) {
      throw TraceError(fmt::format("{}: at {}: {}", trace.name(), to_string(event->at), error.what()));
    }
  }
  std::ranges::stable_sort(steps_, {}, [](const Step& step) { return std::tuple(step.at, step.order); });
}

Step& RecordedSteps::add_step(const TraceEvent& event) {
  // Even numbers are left for the stores before a step.
  return steps_.emplace_back(Step{.at = event.at,
                                  .kind = event.kind,
                                  .adapter = event.host,
                                  .process = event.fields[0],
                                  .address = event.fields[1],
                                  .length = event.fields[2],
                                  .writable = false,
                                  .pinned = false,
                                  .data = bytes_.size(),
                                  .order = 2 * events_++ + 1});
}

void RecordedSteps::add(const TraceEvent& event) {
  switch (event.kind) {
    case EventKind::mmio_write: return add_write(event);
    case EventKind::memory: return add_store(event);
    case EventKind::memory_on_demand:
      throw ConfigError("the recorded programs have memory on demand (IBV_ACCESS_ON_DEMAND): it is not replayed yet");
    case EventKind::memory_pinned: {
      Step& step = add_step(event);
      step.writable = event.fields[3] != 0;
      step.pinned = event.fields[4] != 0;
      return;
    }
    case EventKind::mmio_read:
    case EventKind::config_read:
    case EventKind::config_write: {
      Step& step = add_step(event);
      step.address = event.fields[0];
      step.length = event.fields[1];
      if (step.length == 0 || step.length > sizeof(std::uint64_t)) throw TraceError("a request of a wrong length");
      if (event.kind == EventKind::config_write) append_words(event, 2, step.length);
      return;
    }
    default: add_step(event);
  }
}

void RecordedSteps::append_words(const TraceEvent& event, std::size_t first_field, std::size_t bytes) {
  const auto words = std::as_bytes(std::span(event.fields).subspan(first_field)).first(bytes);
  bytes_.insert(bytes_.end(), words.begin(), words.end());
}

// A write of more than a line comes in parts.
void RecordedSteps::add_write(const TraceEvent& event) {
  const auto& [offset, length, part] = std::tie(event.fields[0], event.fields[1], event.fields[2]);
  if (length == 0 || length > kMostWriteBytes || part >= length || part % kMostWordBytes != 0)
    throw TraceError("a write to BAR0 of a wrong length");
  if (part == 0) {
    Step& step = add_step(event);
    step.address = offset;
    step.length = length;
    requests_[hosts_[event.host]].push_back({event.at, step.order});
  } else if (steps_.empty() || steps_.back().kind != EventKind::mmio_write ||
             steps_.back().data + part != bytes_.size()) {
    throw TraceError("a part of a write to BAR0 without those before");
  }
  append_words(event, 3, std::min<std::size_t>(kMostWordBytes, length - part));
}

void RecordedSteps::add_store(const TraceEvent& event) {
  const auto length = event.fields[2];
  const Duration since{std::int64_t(event.fields[3])};
  if (length == 0 || length > kMostWordBytes || since < Duration{} || since > event.at)
    throw TraceError("a store of a wrong length or time");
  Step& step = add_step(event);
  append_words(event, 4, length);
  const auto& requests = requests_[hosts_[event.host]];
  const auto first = std::ranges::upper_bound(requests, since, {}, &Request::at);
  if (first != requests.end()) {
    step.at = first->at;
    step.order = first->order - 1;
  } else {
    step.at = std::min(event.at, since + Duration{1});
    step.order = 0;
  }
}

}  // namespace rnicsim::sim::rerun
