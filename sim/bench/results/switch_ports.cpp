// SPDX-License-Identifier: Apache-2.0
#include "sim/bench/results/switch_ports.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/switch_routes.h"

namespace rnicsim::sim::bench {
namespace {

using fabric::SwitchPortCounters;
SwitchPortCounters growth_of(const SwitchPortCounters& before, const SwitchPortCounters& after) {
  SwitchPortCounters growth;
  for (std::size_t i = 0; i < kPriorities; ++i) {
    growth.busy_ps[i] = after.busy_ps[i] - before.busy_ps[i];
    growth.wait_ps[i] = after.wait_ps[i] - before.wait_ps[i];
    growth.paused_ps[i] = after.paused_ps[i] - before.paused_ps[i];
    growth.stopped_ps[i] = after.stopped_ps[i] - before.stopped_ps[i];
    growth.most_queue[i] = after.most_queue[i];
    growth.most_held[i] = after.most_held[i];
  }
  growth.control_ps = after.control_ps - before.control_ps;
  growth.tx_discards = after.tx_discards - before.tx_discards;
  growth.rx_discards = after.rx_discards - before.rx_discards;
  growth.ecn_marked = after.ecn_marked - before.ecn_marked;
  return growth;
}

Counter sum(const std::array<Counter, kPriorities>& of) { return std::accumulate(of.begin(), of.end(), Counter{0}); }

// Collects the results of one switch.
class PortLister {
 public:
  explicit PortLister(Duration interval) : ps_(std::max<double>(1, static_cast<double>(interval.ps))) {}

  void add(const std::string& port, const SwitchPortCounters& growth) {
    const auto busy = sum(growth.busy_ps) + growth.control_ps;
    const auto wait = sum(growth.wait_ps);
    if (busy + wait + growth.tx_discards + growth.rx_discards + sum(growth.stopped_ps) + sum(growth.paused_ps) == 0)
      return;
    add_line(port, busy, wait);
    add(port + ".tx_discards", "frames", growth.tx_discards);
    add(port + ".rx_discards", "frames", growth.rx_discards);
    if (growth.ecn_marked != 0) add(port + ".ecn_marked", "frames", growth.ecn_marked);
    for (std::size_t i = 0; i < kPriorities; ++i) {
      const auto priority = fmt::format("{}.p{}", port, i);
      if (growth.busy_ps[i] + growth.paused_ps[i] != 0) {
        add_line(priority, growth.busy_ps[i], growth.wait_ps[i]);
        add_time(priority + ".tx_paused", growth.paused_ps[i]);
        add(priority + ".tx_most_bytes", "bytes", growth.most_queue[i]);
      }
      if (growth.most_held[i] != 0) add(priority + ".rx_most_bytes", "bytes", growth.most_held[i]);
      if (growth.stopped_ps[i] != 0) add_time(priority + ".rx_stopped", growth.stopped_ps[i]);
    }
  }

  void add_lengths(const std::string& port, const fabric::PortHistograms& growth) {
    for (std::size_t i = 0; i < kPriorities; ++i) {
      const auto& lengths = growth.lengths[i];
      if (!lengths.was_filled()) continue;
      const auto stem = fmt::format("{}.p{}.tx_", port, i);
      results_.push_back({stem + "mean_bytes", "bytes", lengths.mean(), Kind::queue});
      results_.push_back({stem + "p50_bytes", "bytes", lengths.percentile(0.5), Kind::queue});
      results_.push_back({stem + "p99_bytes", "bytes", lengths.percentile(0.99), Kind::queue});
    }
  }

  std::vector<CounterResult> take() { return std::move(results_); }

 private:
  using Kind = CounterResult::Kind;

  void add_line(const std::string& stem, Counter busy, Counter wait) {
    add_time(stem + ".tx_busy", busy);
    add(stem + ".tx_wait", "ps", wait);
    results_.push_back({stem + ".tx_queue", "waiting", static_cast<double>(wait) / ps_, Kind::queue});
  }
  void add_time(const std::string& path, Counter value) {
    add(path, "ps", value);
    results_.push_back({path + "_share", "of 1", std::min(1.0, static_cast<double>(value) / ps_), Kind::share});
  }
  void add(const std::string& path, const char* unit, Counter value) {
    results_.push_back({path, unit, static_cast<double>(value)});
  }

  const double ps_;
  std::vector<CounterResult> results_;
};

double share_of(Counter time, Duration interval) {
  return std::min(1.0, static_cast<double>(time) / std::max<double>(1, static_cast<double>(interval.ps)));
}

// The port that delays frames most, of a switch that pauses its neighbours.
std::string fullest_port(const std::vector<std::string>& names, const std::vector<SwitchPortCounters>& growths) {
  std::size_t fullest = 0;
  Counter most = 0;
  for (std::size_t port = 0; port < growths.size(); ++port) {
    const auto held = sum(growths[port].busy_ps) + *std::ranges::max_element(growths[port].paused_ps);
    if (held <= most) continue;
    most = held;
    fullest = port;
  }
  return fmt::format("port.{}.tx", names[fullest]);
}

std::vector<SwitchPortCounters> growths_of(const BenchResult& result, std::size_t box) {
  const auto& before = result.runner.before().ports[box];
  const auto& after = result.runner.after().ports[box];
  std::vector<SwitchPortCounters> growths;
  for (std::size_t port = 0; port < after.size(); ++port) growths.push_back(growth_of(before[port], after[port]));
  return growths;
}

void add_pauses_at(const BenchResult& result, std::size_t box, std::vector<Pause>& pauses) {
  const auto& topology = result.system.config().topology;
  const auto names = topology.port_names(box);
  const auto growths = growths_of(result, box);
  const auto interval = result.runner.interval();
  for (std::size_t port = 0; port < growths.size(); ++port)
    for (std::uint32_t priority = 0; priority < kPriorities; ++priority) {
      const auto peer = names[port].substr(0, names[port].find('#'));
      if (const auto asked = growths[port].stopped_ps[priority]; asked != 0)
        pauses.push_back(
            {topology.switches[box], peer, priority, share_of(asked, interval), fullest_port(names, growths)});
      // A pause that another switch asks for is listed at that switch.
      const auto node = topology.find_node(peer);
      if (const auto obeyed = growths[port].paused_ps[priority]; obeyed != 0 && node && !topology.is_switch(*node))
        pauses.push_back({peer, topology.switches[box], priority, share_of(obeyed, interval), "nic.receive_buffer"});
    }
}

// Pauses on cables without a switch.
void add_pauses_between_nics(const BenchResult& result, std::vector<Pause>& pauses) {
  const auto& topology = result.system.config().topology;
  for (const auto& [from, to] : topology.cables) {
    if (topology.is_switch(from) || topology.is_switch(to)) continue;
    for (const auto& [paused, by] : {std::pair(from, to), std::pair(to, from)}) {
      const auto counters = counter_results(result.runner.before().hosts[paused], result.runner.after().hosts[paused],
                                            result.runner.interval());
      const auto time = std::ranges::find(counters, "nic.port.tx_paused", &CounterResult::path);
      if (time == counters.end() || time->value == 0) continue;
      pauses.push_back({topology.node_name(by),
                        topology.node_name(paused),
                        {},
                        share_of(static_cast<Counter>(time->value), result.runner.interval()),
                        "nic.receive_buffer"});
    }
  }
}

}  // namespace

std::vector<CounterResult> port_results(const BenchResult& result, std::size_t box) {
  const auto names = result.system.config().topology.port_names(box);
  const auto growths = growths_of(result, box);
  PortLister lister(result.runner.interval());
  for (std::size_t port = 0; port < growths.size(); ++port) lister.add("port." + names[port], growths[port]);
  const auto histograms = port_histograms(result, box);
  for (std::size_t port = 0; port < histograms.size(); ++port)
    lister.add_lengths("port." + names[port], histograms[port]);
  return lister.take();
}

std::vector<fabric::PortHistograms> port_histograms(const BenchResult& result, std::size_t box) {
  const auto& before = result.runner.before().histograms[box];
  const auto& after = result.runner.after().histograms[box];
  std::vector<fabric::PortHistograms> growths;
  for (std::size_t port = 0; port < after.size(); ++port) growths.push_back(after[port].since(before[port]));
  return growths;
}

std::vector<Pause> pauses_of(const BenchResult& result) {
  std::vector<Pause> pauses;
  for (std::size_t box = 0; box < result.system.switches(); ++box) add_pauses_at(result, box, pauses);
  add_pauses_between_nics(result, pauses);
  std::ranges::stable_sort(pauses, std::ranges::greater{}, &Pause::share);
  return pauses;
}

std::string pauses_text(const std::vector<Pause>& pauses) {
  constexpr std::size_t kMost = 16;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, pauses.size()); ++i) {
    const auto& pause = pauses[i];
    const auto priority = pause.priority ? fmt::format(", priority {},", *pause.priority) : "";
    text += fmt::format("{} pauses {}{} for {:.3g} % of the time, because of {}\n", pause.by, pause.paused, priority,
                        100 * pause.share, pause.because);
  }
  if (pauses.size() > kMost) text += fmt::format("{} more pauses are in the JSON\n", pauses.size() - kMost);
  return text;
}

Json pauses_json(const std::vector<Pause>& pauses) {
  Json json = Json::array();
  for (const auto& pause : pauses) {
    json.push_back({{"by", pause.by}, {"paused", pause.paused}});
    if (pause.priority) json.back()["priority"] = *pause.priority;
    json.back()["share"] = pause.share;
    json.back()["because"] = pause.because;
  }
  return json;
}

}  // namespace rnicsim::sim::bench
