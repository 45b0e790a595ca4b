// SPDX-License-Identifier: Apache-2.0
#include "sim/rerun/recorded_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "model/abi/device.h"
#include "sim/config/config_error.h"

namespace rnicsim::sim::rerun {
namespace {

constexpr std::size_t kMostWordBytes = 64;
constexpr std::uint64_t kWord = 8;
constexpr std::uint64_t kMostRange = std::uint64_t(1) << 40;
constexpr std::size_t kMostWriteBytes = 256;  // limit for one write to BAR0

void check_offset(std::uint64_t offset) {
  if (offset >= abi::kBarSize) throw TraceError("a request beyond BAR0");
}

}  // namespace

RecordedSteps::RecordedSteps(TraceReader& trace, const std::vector<std::uint32_t>& hosts)
    : hosts_(hosts), awaited_(hosts.size()), requests_(hosts.empty() ? 0 : 1 + *std::ranges::max_element(hosts)) {
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
  if (event.kind != EventKind::memory) end_ = event.at;
  const std::uint32_t awaited = event.kind == EventKind::memory ? 0 : std::exchange(awaited_[event.host], 0);
  // Steps get odd numbers; the even numbers are for stores before a step.
  return steps_.emplace_back(Step{.at = event.at,
                                  .kind = event.kind,
                                  .adapter = event.host,
                                  .process = event.fields[0],
                                  .address = event.fields[1],
                                  .length = event.fields[2],
                                  .writable = false,
                                  .pinned = false,
                                  .precedes_request = false,
                                  .wait = Step::Wait::none,
                                  .awaited = awaited,
                                  .data = bytes_.size(),
                                  .order = 2 * events_++ + 1});
}

void RecordedSteps::add(const TraceEvent& event) {
  switch (event.kind) {
    case EventKind::awaited: return add_awaited(event);
    case EventKind::mmio_write: return add_write(event);
    case EventKind::memory: return add_store(event);
    case EventKind::memory_on_demand:
      throw ConfigError(
          "the recorded programs use memory on demand (IBV_ACCESS_ON_DEMAND), which replay does not support yet");
    case EventKind::memory_absent:
    case EventKind::memory_pinned: {
      Step& step = add_step(event);
      if (step.length > kMostRange) throw TraceError("a memory range is too long");
      // The unmapping must come before the access of the device that found the memory unmapped, at the same time.
      if (event.kind == EventKind::memory_absent) step.at = std::max(Duration{}, event.at - Duration{1});
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
      check_offset(step.address);
      if (step.length == 0 || step.length > sizeof(std::uint64_t)) throw TraceError("a request of a wrong length");
      if (event.kind == EventKind::config_write) append_words(event, 2, step.length);
      return;
    }
    default: add_step(event);
  }
}

void RecordedSteps::add_awaited(const TraceEvent& event) {
  const auto& [what, owner, address, count, came] =
      std::tie(event.fields[0], event.fields[1], event.fields[2], event.fields[3], event.fields[4]);
  if (what < std::uint64_t(Awaited::memory) || what > std::uint64_t(Awaited::answer) || count == 0 ||
      came > std::uint64_t(event.at.ps))
    throw TraceError("a wait for nothing");
  outputs_.push_back({Awaited(what), owner, address, count, Duration{std::int64_t(came)}});
  awaited_[event.host] = std::uint32_t(outputs_.size());
}

void RecordedSteps::append_words(const TraceEvent& event, std::size_t first_field, std::size_t bytes) {
  const auto words = std::as_bytes(std::span(event.fields).subspan(first_field)).first(bytes);
  bytes_.insert(bytes_.end(), words.begin(), words.end());
}

// A write longer than a cache line is recorded in several events.
void RecordedSteps::add_write(const TraceEvent& event) {
  const auto& [offset, length, part] = std::tie(event.fields[0], event.fields[1], event.fields[2]);
  if (length == 0 || length > kMostWriteBytes || part >= length || part % kMostWordBytes != 0)
    throw TraceError("a write to BAR0 of a wrong length");
  if (part == 0) {
    Step& step = add_step(event);
    step.address = offset;
    step.length = length;
    check_offset(offset);
    requests_[hosts_[event.host]].push_back({event.at, step.order});
  } else if (steps_.empty() || steps_.back().kind != EventKind::mmio_write ||
             steps_.back().data + part != bytes_.size()) {
    throw TraceError("a part of a write to BAR0 without those before");
  }
  const auto bytes = std::min<std::size_t>(kMostWordBytes, length - part);
  append_words(event, 3, bytes);
  if (part != 0 || bytes != kMostWordBytes) return;
  const auto line = std::span(bytes_).last(bytes);
  blue_flames_[{hosts_[event.host], std::string(reinterpret_cast<const char*>(line.data()), line.size())}] =
      requests_[hosts_[event.host]].back();
}

void RecordedSteps::add_store(const TraceEvent& event) {
  const auto length = event.fields[2];
  const Duration since{std::int64_t(event.fields[3])};
  if (length == 0 || length > kMostWordBytes || since < Duration{} || since > event.at)
    throw TraceError("a store of a wrong length or time");
  Step& step = add_step(event);
  append_words(event, 4, length);
  const std::uint32_t host = hosts_[event.host];
  auto& process = processes_[{host, step.process}];
  bool is_again = false;
  for (std::uint64_t word = step.address / kWord; word * kWord < step.address + length; ++word)
    is_again |= !process.stored.insert(word).second;
  process.memory.store(step.address, bytes_of(step));
  const auto place_before = [](Step& store, const Request& request) {
    store.precedes_request = true;
    store.at = request.at;
    store.order = request.order - 1;
  };
  if (const auto* request = blue_flame_of(step); request != nullptr && request->at > since)
    return place_before(step, *request);
  if (is_again) step.wait = Step::Wait::for_access;
  const auto& requests = requests_[host];
  const auto first = std::ranges::upper_bound(requests, since, {}, &Request::at);
  if (first == requests.end()) {
    step.at = std::min(event.at, since + Duration{1});
    step.order = 0;
    return;
  }
  place_before(step, *first);
  if (first->order == requests.back().order) {
    step.wait = Step::Wait::none;
  } else if (is_again) {
    Step latest = step;
    latest.wait = Step::Wait::no_longer;
    place_before(latest, requests.back());
    steps_.push_back(latest);
  }
}

const RecordedSteps::Request* RecordedSteps::blue_flame_of(const Step& store) {
  const std::uint32_t host = hosts_[store.adapter];
  std::string line(kMostWordBytes, '\0');
  processes_[{host, store.process}].memory.read(store.address / line.size() * line.size(),
                                                std::as_writable_bytes(std::span(line)));
  const auto found = blue_flames_.find({host, line});
  return found != blue_flames_.end() ? &found->second : nullptr;
}

}  // namespace rnicsim::sim::rerun
