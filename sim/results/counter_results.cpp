// SPDX-License-Identifier: Apache-2.0
#include "sim/results/counter_results.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace rnicsim::sim {
namespace {

using Kind = CounterResult::Kind;

class Deriver {
 public:
  Deriver(const CounterList& before, const CounterList& after, Duration interval)
      : old_(before.entries()), fresh_(after.entries()), ps_(std::max<double>(1, static_cast<double>(interval.ps))) {}

  std::vector<CounterResult> results() {
    for (std::size_t i = 0; i < fresh_.size(); ++i) {
      const auto& entry = fresh_[i];
      add(entry.path, entry.unit, growth(i), Kind::growth);
      if (entry.kind == CounterEntry::Kind::busy)
        add_shares(i);
      else if (entry.kind == CounterEntry::Kind::waited)
        add(queue_path(entry.path), "waiting", growth(i) / ps_, Kind::queue);
      else if (entry.kind == CounterEntry::Kind::count && entry.unit == "bytes" && entry.path.starts_with("nic."))
        add(entry.path + "_rate", "b/s", 8e12 * growth(i) / ps_, Kind::bit_rate);
      add_hit_rates(entry.path, growth(i));
    }
    return std::move(results_);
  }

 private:
  // Path of the derived value: "nic.units.transmit_busiest_share" for "nic.units.transmit_busy".
  static std::string busiest_path(const std::string& path) {
    constexpr std::string_view kBusy = "_busy";
    return path.substr(0, path.size() - kBusy.size()) + "_busiest_share";
  }
  // Path of the derived value: "nic.port.tx_queue" for "nic.port.tx_wait".
  static std::string queue_path(const std::string& path) {
    constexpr std::string_view kWait = "_wait";
    return path.substr(0, path.size() - kWait.size()) + "_queue";
  }
  // A service interval is counted whole at its start or at its end, so a share may be slightly too high or too low.
  void add_shares(std::size_t i) {
    const auto& entry = fresh_[i];
    add(entry.path + "_share", "of 1", std::min(1.0, growth(i) / ps_ / entry.units), Kind::share);
    Counter most = 0;
    for (std::size_t unit = 0; unit < entry.each.size(); ++unit)
      most = std::max(most, entry.each[unit] - (unit < old_[i].each.size() ? old_[i].each[unit] : 0));
    if (!entry.each.empty())
      add(busiest_path(entry.path), "of 1", std::min(1.0, static_cast<double>(most) / ps_), Kind::share);
  }
  double growth(std::size_t i) const {
    const Counter since = fresh_[i].kind == CounterEntry::Kind::most ? 0 : old_[i].value;
    return static_cast<double>(fresh_[i].value - since);
  }
  std::optional<double> growth_of(const std::string& path) const {
    const auto found = std::ranges::find(fresh_, path, &CounterEntry::path);
    if (found == fresh_.end()) return std::nullopt;
    return growth(static_cast<std::size_t>(found - fresh_.begin()));
  }

  // A cache of one level has `hits` and `misses`. In a cache of two levels, a miss of l0 is looked up in l1.
  void add_hit_rates(const std::string& path, double misses) {
    constexpr std::string_view kMisses = ".misses";
    if (!path.ends_with(kMisses)) return;
    const auto stem = path.substr(0, path.size() - kMisses.size() + 1);
    const auto first = growth_of(stem + "l0_hits"), second = growth_of(stem + "l1_hits");
    if (first && second) {
      add_rate(stem + "l0_hit_rate", *first, *second + misses);
      add_rate(stem + "l1_hit_rate", *second, misses);
      add_rate(stem + "hit_rate", *first + *second, misses);
    } else if (const auto hits = growth_of(stem + "hits")) {
      add_rate(stem + "hit_rate", *hits, misses);
    }
  }
  void add_rate(std::string path, double hits, double misses) {
    const double all = hits + misses;
    add(std::move(path), "of 1", all == 0 ? 0 : hits / all, Kind::hit_rate);
    results_.back().known = all != 0;
  }
  void add(std::string path, std::string unit, double value, Kind kind) {
    results_.push_back({std::move(path), std::move(unit), value, kind});
  }

  const std::vector<CounterEntry>& old_;
  const std::vector<CounterEntry>& fresh_;
  const double ps_;
  std::vector<CounterResult> results_;
};

}  // namespace

std::vector<CounterResult> counter_results(const CounterList& before, const CounterList& after, Duration interval) {
  return Deriver(before, after, interval).results();
}

}  // namespace rnicsim::sim
