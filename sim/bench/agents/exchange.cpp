// SPDX-License-Identifier: Apache-2.0
#include "sim/bench/agents/exchange.h"

#include <algorithm>
#include <utility>

namespace rnicsim::sim::bench {
namespace {

constexpr std::uint32_t kNoMore = ~0u;

// Values only: names, units and meanings are the same in all processes.
void put_counters(ByteWriter& out, const CounterList& list) {
  for (const auto& entry : list.entries()) {
    out.put(entry.value);
    out.put_bytes(std::as_bytes(std::span(entry.each)));
  }
}

void take_counters(ByteReader& in, CounterList& list) {
  auto entries = list.entries();
  for (auto& entry : entries) {
    entry.value = in.take<Counter>();
    const auto each = in.take_bytes();
    if (each.size() != entry.each.size() * sizeof(Counter)) throw std::runtime_error("counters of another system");
    if (!each.empty()) std::memcpy(entry.each.data(), each.data(), each.size());
  }
  list = CounterList(std::move(entries));
}

template <class Each>
void put_all(ByteWriter& out, std::size_t count, const std::function<bool(std::uint32_t)>& here, Each each) {
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!here(i)) continue;
    out.put(i);
    each(i);
  }
  out.put(kNoMore);
}

template <class Each>
void take_all(ByteReader& in, std::size_t count, Each each) {
  for (auto i = in.take<std::uint32_t>(); i != kNoMore; i = in.take<std::uint32_t>()) {
    if (i >= count) throw std::runtime_error("results of another system");
    each(i);
  }
}

}  // namespace

void put(ByteWriter& out, const Snapshot& snapshot, const Share& share) {
  put_all(out, snapshot.hosts.size(), share.host, [&](auto i) { put_counters(out, snapshot.hosts[i]); });
  put_all(out, snapshot.switches.size(), share.box, [&](auto i) {
    put_counters(out, snapshot.switches[i]);
    for (const auto& port : snapshot.ports[i]) out.put(port);
    for (const auto& port : snapshot.histograms[i]) port.put(out);
  });
  put_all(out, snapshot.agents_busy.size(), share.agent, [&](auto i) { out.put(snapshot.agents_busy[i]); });
  for (const auto backlog : snapshot.backlogs) out.put(backlog);
  out.put(snapshot.packets);
  out.put(snapshot.posted);
  out.put(snapshot.events);
  out.put(snapshot.cpu_seconds);
}

void take(ByteReader& in, Snapshot& snapshot) {
  take_all(in, snapshot.hosts.size(), [&](auto i) { take_counters(in, snapshot.hosts[i]); });
  take_all(in, snapshot.switches.size(), [&](auto i) {
    take_counters(in, snapshot.switches[i]);
    for (auto& port : snapshot.ports[i]) port = in.take<fabric::SwitchPortCounters>();
    for (auto& port : snapshot.histograms[i]) port = fabric::PortHistograms::take(in);
  });
  take_all(in, snapshot.agents_busy.size(), [&](auto i) { snapshot.agents_busy[i] = in.take<Duration>(); });
  for (auto& backlog : snapshot.backlogs) backlog += in.take<double>();
  snapshot.packets += in.take<std::uint64_t>();
  snapshot.posted += in.take<std::uint64_t>();
  snapshot.events += in.take<std::uint64_t>();
  snapshot.cpu_seconds += in.take<double>();
}

void put(ByteWriter& out, const FlowState& flow) {
  out.put(flow.posted);
  out.put(flow.completed);
  out.put(flow.operations);
  out.put(flow.bytes);
  out.put(flow.last);
  for (const auto operations : flow.of_mix) out.put(operations);
  for (const auto frames : flow.received) out.put(frames);
  flow.latency.put(out);
  flow.batches.put(out);
  for (const auto& batches : flow.of_senders) batches.put(out);
  for (const auto& work : flow.work) out.put(work);
}

void take(ByteReader& in, FlowState& flow) {
  flow.posted += in.take<std::uint64_t>();
  flow.completed += in.take<std::uint64_t>();
  flow.operations += in.take<std::uint64_t>();
  flow.bytes += in.take<std::uint64_t>();
  flow.last = std::max(flow.last, in.take<Duration>());
  for (auto& operations : flow.of_mix) operations += in.take<std::uint64_t>();
  for (auto& frames : flow.received) frames += in.take<std::uint64_t>();
  flow.latency.add(Histogram::take(in));
  flow.batches.add(Batches::take(in));
  for (auto& batches : flow.of_senders) batches.add(Batches::take(in));
  for (auto& work : flow.work) work.add(in.take<SenderWork>());
}

}  // namespace rnicsim::sim::bench
