// SPDX-License-Identifier: Apache-2.0
#include "sim/trace/stat.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <unordered_map>
#include <vector>

#include "model/abi/queue.h"
#include "sim/results/histogram.h"
#include "sim/trace/queue_pair_events.h"

namespace rnicsim::sim {
namespace {

struct PendingWqe {
  std::uint64_t index;
  Duration taken;
  bool signaled;
};

// Statistics of one queue pair. Latency: from the time when the engine takes a signaled WQE to its CQE.
struct QpStatistics {
  std::uint64_t wqes = 0, bytes = 0, completions = 0, errors = 0, receives = 0;
  std::uint64_t completed = 0;  // number of WQEs: a CQE also completes the unsignaled WQEs before its own
  std::uint64_t packets = 0, sent_again = 0, received = 0, naks = 0, cnps = 0;
  std::optional<Duration> first;
  Duration last;
  Histogram latency;
  std::deque<PendingWqe> pending;
  NewPsns psns;
};

class Statistics {
 public:
  explicit Statistics(const TraceHeader& header) : header_(header), counts_(header.hosts.size()) {}

  void add(const TraceEvent& event) {
    ++counts_[event.host][std::size_t(event.kind)];
    const auto qp = qp_of(event);
    if (!qp) return;
    auto& of = qps_[Place{event.host} << 32 | *qp];
    switch (event.kind) {
      case EventKind::wqe: return add_wqe(of, event);
      case EventKind::cqe: return add_cqe(of, event);
      case EventKind::packet_sent: return add_sent(of, event);
      case EventKind::packet_received: return add_received(of, event);
      default: return;
    }
  }

  std::string text(Duration end) const {
    auto text = fmt::format("rnicsim {}, seed {}, {} time; ends at {}\n", header_.program, header_.seed, header_.time,
                            to_string(end));
    for (const auto& command : header_.commands) text += fmt::format("  {}\n", command);
    text += counts_text();
    std::vector<Place> places;
    for (const auto& [place, of] : qps_)
      if (of.wqes + of.packets + of.received + of.completions != 0) places.push_back(place);
    std::ranges::sort(places);
    for (const auto place : places) text += qp_text(std::uint32_t(place >> 32), std::uint32_t(place), qps_.at(place));
    return text;
  }

 private:
  using Place = std::uint64_t;  // host << 32 | queue pair

  static void add_wqe(QpStatistics& of, const TraceEvent& event) {
    if (!is_send_queue(event)) return;
    ++of.wqes;
    if (!of.first) of.first = event.at;
    of.bytes += value_of(event, field::bytes);
    if (of.pending.size() == kMostWqes) of.pending.pop_front();
    of.pending.push_back({value_of(event, field::index), event.at, value_of(event, field::signaled) != 0});
  }

  static void add_cqe(QpStatistics& of, const TraceEvent& event) {
    of.last = event.at;
    if (value_of(event, field::syndrome) != std::uint64_t(abi::CqeSyndrome::success)) ++of.errors;
    if (!is_requesters(event)) return void(++of.receives);
    ++of.completions;
    const auto counter = value_of(event, field::wqe_counter);
    const auto found = std::ranges::find(of.pending, counter, &PendingWqe::index);
    if (found == of.pending.end()) return;
    if (found->signaled) of.latency.add(event.at - found->taken);
    of.completed += std::uint64_t(found - of.pending.begin()) + 1;
    of.pending.erase(of.pending.begin(), found + 1);
  }

  static void add_sent(QpStatistics& of, const TraceEvent& event) {
    ++of.packets;
    if (is_request(event) && !of.psns.add(value_of(event, field::psn))) ++of.sent_again;
  }

  static void add_received(QpStatistics& of, const TraceEvent& event) {
    ++of.received;
    if (is_nak(event)) ++of.naks;
    if (is_cnp(event)) ++of.cnps;
  }

  std::string counts_text() const {
    auto text = fmt::format("{:<20}", "events");
    for (const auto& host : header_.hosts) text += fmt::format(" {:>12}", host);
    text += '\n';
    for (std::size_t kind = 1; kind < kEventKinds; ++kind) {
      const auto any = std::ranges::any_of(counts_, [kind](const auto& host) { return host[kind] != 0; });
      if (!any) continue;
      text += fmt::format("  {:<18}", info(EventKind(kind)).name);
      for (const auto& host : counts_) text += fmt::format(" {:>12}", host[kind]);
      text += '\n';
    }
    return text;
  }

  std::string qp_text(std::uint32_t host, std::uint32_t qp, const QpStatistics& of) const {
    auto text = fmt::format("QP {:#x} of {}\n", qp, header_.hosts[host]);
    text += fmt::format("  requests     {} WQEs, {} bytes, {} completions, {} receives, {} errors\n", of.wqes, of.bytes,
                        of.completions, of.receives, of.errors);
    text += fmt::format("  packets      {} sent, {} of them again; {} received, {} NAKs, {} CNPs\n", of.packets,
                        of.sent_again, of.received, of.naks, of.cnps);
    if (of.first && of.last > *of.first) {
      const double seconds = double((of.last - *of.first).ps) / 1e12;
      text += fmt::format("  rate         {:.6g} Gb/s, {:.6g} messages/s, from {} to {}\n",
                          double(of.bytes) * 8 / seconds / 1e9, double(of.completed) / seconds, to_string(*of.first),
                          to_string(of.last));
    }
    if (of.latency.count() == 0) return text;
    const auto spread = of.latency.spread();
    return text + fmt::format("  WQE to CQE   mean {}, median {}, 99 % {}, least {}, most {} ({} WQEs)\n",
                              to_string(spread.mean), to_string(spread.p50), to_string(spread.p99),
                              to_string(spread.least), to_string(spread.most), spread.count);
  }

  const TraceHeader& header_;
  std::vector<std::array<std::uint64_t, kEventKinds>> counts_;
  std::unordered_map<Place, QpStatistics> qps_;
};

}  // namespace

std::string trace_statistics(TraceSource& trace) {
  Statistics statistics(trace.header());
  for (TraceEvent event; trace.next(event);) statistics.add(event);
  return statistics.text(trace.end());
}

}  // namespace rnicsim::sim
