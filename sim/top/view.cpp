// SPDX-License-Identifier: Apache-2.0
#include "sim/top/view.h"

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "sim/results/results_json.h"

namespace rnicsim::sim::top {
namespace {

// Counters of events that make a requester retransmit.
constexpr std::array kRetries{"nic.engine.packet_seq_err", "nic.engine.implied_nak_seq_err",
                              "nic.engine.local_ack_timeout_err", "nic.engine.rnr_nak_retry_err"};
constexpr std::array kTroubles{"nic.engine.packet_seq_err",
                               "nic.engine.implied_nak_seq_err",
                               "nic.engine.local_ack_timeout_err",
                               "nic.engine.rnr_nak_retry_err",
                               "nic.engine.duplicate_request",
                               "nic.engine.out_of_sequence",
                               "nic.engine.out_of_buffer",
                               "nic.engine.silently_dropped",
                               "nic.engine.req_cqe_error",
                               "nic.engine.resp_cqe_error",
                               "nic.completion.cq_overruns",
                               "nic.rx.rx_icrc_encapsulated",
                               "nic.rx.malformed",
                               "iommu.faults",
                               "link.dropped",
                               "link.corrupted",
                               "link.duplicated",
                               "link.delayed",
                               "link.reordered"};

CounterList zeros(const CounterList& counters) {
  auto entries = counters.entries();
  for (auto& entry : entries) {
    entry.value = 0;
    entry.each.clear();
  }
  return CounterList(std::move(entries));
}

// Counters of the block in the earlier snapshot; zeros: the block is not in it.
CounterList earlier(const std::vector<Snapshot::Block>* before, const Snapshot::Block& block, std::size_t index) {
  const bool is_there = before != nullptr && index < before->size() && (*before)[index].label == block.label &&
                        (*before)[index].counters.entries().size() == block.counters.entries().size();
  return is_there ? (*before)[index].counters : zeros(block.counters);
}

// Finds results by path.
class Lookup {
 public:
  Lookup(const std::vector<CounterResult>& results, Duration interval) : seconds_(double(interval.ps) / 1e12) {
    for (const auto& result : results) by_path_.emplace(result.path, &result);
  }
  double value(std::string_view path) const {
    const auto found = by_path_.find(path);
    return found == by_path_.end() ? 0 : found->second->value;
  }
  double a_second(std::string_view path) const { return seconds_ > 0 ? value(path) / seconds_ : 0; }
  std::optional<double> hit_rate(std::string_view path) const {
    const auto found = by_path_.find(path);
    if (found == by_path_.end() || !found->second->known) return std::nullopt;
    return found->second->value;
  }

 private:
  const double seconds_;
  std::unordered_map<std::string_view, const CounterResult*> by_path_;
};

// Name of a resource: "dma.to_host" for "nic.dma.to_host_busy_share" and "nic.dma.to_host_busiest_share".
std::string resource_name(std::string_view path) {
  constexpr std::string_view kNic = "nic.";
  if (path.starts_with(kNic)) path.remove_prefix(kNic.size());
  for (const std::string_view suffix : {"_share", "_busy", "_busiest"})
    if (path.ends_with(suffix)) path.remove_suffix(suffix.size());
  return std::string(path);
}

AdapterView adapter_view(const CounterList& before, const Snapshot::Block& after, Duration interval) {
  AdapterView view;
  view.label = after.label;
  view.results = counter_results(before, after.counters, interval);
  const Lookup look(view.results, interval);
  view.transmitted = 8 * look.a_second("nic.port.tx_bytes");
  view.received = 8 * look.a_second("nic.port.rx_bytes");
  view.packets_sent = look.a_second("nic.tx.packets");
  view.packets_received = look.a_second("nic.rx.packets");
  view.doorbells = look.a_second("nic.doorbell.send_doorbells") + look.a_second("nic.doorbell.blueflame_doorbells");
  view.completions = look.a_second("nic.completion.cqes");
  view.qpc = look.hit_rate("nic.contexts.qpc.hit_rate");
  view.cqc = look.hit_rate("nic.contexts.cqc.hit_rate");
  view.mpt = look.hit_rate("nic.contexts.mpt.hit_rate");
  view.mtt = look.hit_rate("nic.contexts.mtt.hit_rate");
  for (const char* path : kRetries) view.retries += look.value(path);
  for (const auto& result : view.results)
    if (result.kind == CounterResult::Kind::share) view.shares.push_back({resource_name(result.path), result.value});
  std::ranges::stable_sort(view.shares, std::greater(), &AdapterView::Share::value);
  // Keep only the busiest of several units: idle units do not help it.
  std::set<std::string> seen;
  std::erase_if(view.shares, [&](const auto& share) { return !seen.insert(share.resource).second; });
  for (const auto& entry : after.counters.entries())
    if (entry.value != 0 && std::ranges::find(kTroubles, entry.path) != kTroubles.end())
      view.troubles.push_back({resource_name(entry.path), look.value(entry.path), entry.value});
  return view;
}

SwitchView switch_view(const CounterList& before, const Snapshot::Block& after, Duration interval) {
  const auto results = counter_results(before, after.counters, interval);
  const Lookup look(results, interval);
  SwitchView view{after.label, 8 * look.a_second("bytes"), look.a_second("frames")};
  for (const auto& entry : after.counters.entries()) {
    if (entry.path == "most_waiting") view.most_waiting = entry.value;
    if (entry.path == "unknown") view.unknown = entry.value;
  }
  return view;
}

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : nullptr; }

Json adapter_json(const AdapterView& view) {
  Json json{{"tx_bits_per_second", view.transmitted},
            {"rx_bits_per_second", view.received},
            {"tx_packets_per_second", view.packets_sent},
            {"rx_packets_per_second", view.packets_received},
            {"doorbells_per_second", view.doorbells},
            {"completions_per_second", view.completions},
            {"qpc_hit_rate", or_null(view.qpc)},
            {"cqc_hit_rate", or_null(view.cqc)},
            {"mpt_hit_rate", or_null(view.mpt)},
            {"mtt_hit_rate", or_null(view.mtt)},
            {"retries", view.retries}};
  for (const auto& share : view.shares) json["shares"][share.resource] = share.value;
  json.update(counters_json(view.results));
  return json;
}

}  // namespace

View make_view(const Snapshot* before, Snapshot after) {
  View view;
  view.interval = before != nullptr ? after.time - before->time : after.time;
  if (before != nullptr && after.wall_ns > before->wall_ns)
    view.speed = double(view.interval.ps) / 1e12 / (double(after.wall_ns - before->wall_ns) / 1e9);
  for (std::size_t i = 0; i < after.adapters.size(); ++i) {
    const auto& block = after.adapters[i];
    view.adapters.push_back(
        adapter_view(earlier(before != nullptr ? &before->adapters : nullptr, block, i), block, view.interval));
  }
  for (std::size_t i = 0; i < after.switches.size(); ++i) {
    const auto& block = after.switches[i];
    view.switches.push_back(
        switch_view(earlier(before != nullptr ? &before->switches : nullptr, block, i), block, view.interval));
  }
  view.snapshot = std::move(after);
  return view;
}

Json view_json(const View& view) {
  Json json{{"pid", view.snapshot.pid},
            {"command_line", view.snapshot.command},
            {"simulated_ps", view.snapshot.time.ps},
            {"interval_ps", view.interval.ps},
            {"simulated_seconds_per_second", or_null(view.speed)},
            {"work", view.snapshot.work},
            {"adapters", Json::object()},
            {"switches", Json::object()},
            {"programs", Json::array()}};
  for (const auto& adapter : view.adapters) json["adapters"][adapter.label] = adapter_json(adapter);
  for (const auto& box : view.switches)
    json["switches"][box.label] = {{"bits_per_second", box.bits},
                                   {"frames_per_second", box.frames},
                                   {"most_waiting", box.most_waiting},
                                   {"unknown", box.unknown}};
  for (const auto& program : view.snapshot.programs)
    json["programs"].push_back({{"host", program.host}, {"program", program.name}, {"threads", program.threads}});
  return json;
}

}  // namespace rnicsim::sim::top
