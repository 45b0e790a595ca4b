// SPDX-License-Identifier: Apache-2.0
#include "sim/check/trace_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <fstream>
#include <optional>
#include <utility>

#include "model/abi/queue.h"
#include "sim/recording/trace_file.h"
#include "sim/results/histogram.h"
#include "sim/trace/event_filter.h"
#include "sim/trace/queue_pair_events.h"

namespace rnicsim::sim::check {
namespace {

struct TakenWqe {
  std::uint64_t index, bytes, opcode;
  bool signaled;
  Duration at;
};

// Sums of one queue pair, or of all queue pairs of a host.
struct Owner {
  std::uint64_t messages = 0, bytes = 0;
  std::optional<Duration> first;
  Duration last;
  std::map<std::uint64_t, Histogram> latencies;  // by opcode
};

class TraceSummary {
 public:
  explicit TraceSummary(const TraceHeader& header) : header_(header), hosts_(header.hosts.size()) {}

  void add(const TraceEvent& event) {
    ++counts_[std::size_t(event.kind)];
    if (event.kind == EventKind::wqe && is_send_queue(event)) take(event);
    if (event.kind == EventKind::cqe && is_requesters(event)) complete(event);
  }

  Numbers numbers(Duration end) const {
    Numbers result{{"end_ps", double(end.ps)}};
    for (std::size_t kind = 1; kind < counts_.size(); ++kind)
      if (counts_[kind] != 0) result[fmt::format("events.{}", info(EventKind(kind)).name)] = double(counts_[kind]);
    for (std::size_t host = 0; host < hosts_.size(); ++host) put(header_.hosts[host], hosts_[host], result);
    for (const auto& [where, qp] : qps_)
      put(fmt::format("{}.qp[{:#x}]", header_.hosts[where.first], where.second), qp.owner, result);
    return result;
  }

 private:
  struct QueuePair {
    Owner owner;
    std::deque<TakenWqe> pending;
  };

  QueuePair& queue_pair(const TraceEvent& event) {
    return qps_[{event.host, static_cast<std::uint32_t>(qp_of(event).value_or(0))}];
  }

  void take(const TraceEvent& event) {
    auto& qp = queue_pair(event);
    for (auto* owner : {&qp.owner, &hosts_[event.host]})
      if (!owner->first) owner->first = event.at;
    qp.pending.push_back({value_of(event, field::index), value_of(event, field::bytes), value_of(event, field::opcode),
                          value_of(event, field::signaled) != 0, event.at});
  }

  // A CQE also completes the unsignaled WQEs before its own.
  void complete(const TraceEvent& event) {
    auto& qp = queue_pair(event);
    const auto found = std::ranges::find(qp.pending, value_of(event, field::wqe_counter), &TakenWqe::index);
    if (found == qp.pending.end()) return;
    const bool is_good = value_of(event, field::syndrome) == std::uint64_t(abi::CqeSyndrome::success);
    for (auto* owner : {&qp.owner, &hosts_[event.host]}) {
      if (!is_good) break;
      owner->last = event.at;
      for (auto wqe = qp.pending.begin(); wqe != found + 1; ++wqe) {
        ++owner->messages;
        owner->bytes += wqe->bytes;
      }
      if (found->signaled) owner->latencies[found->opcode].add(event.at - found->at);
    }
    qp.pending.erase(qp.pending.begin(), found + 1);
  }

  static void put(const std::string& name, const Owner& owner, Numbers& result) {
    constexpr double kPsPerS = 1e12;
    if (owner.messages == 0 || !owner.first || owner.last <= *owner.first) return;
    const double seconds = double((owner.last - *owner.first).ps) / kPsPerS;
    result[name + ".messages_per_s"] = double(owner.messages) / seconds;
    result[name + ".goodput_bits_per_s"] = double(owner.bytes) * 8 / seconds;
    for (const auto& [opcode, latency] : owner.latencies) {
      const auto path = fmt::format("{}.{}.latency_ps", name, opcode_text(opcode));
      result[path + ".p50"] = double(latency.percentile(0.5).ps);
      result[path + ".p99"] = double(latency.percentile(0.99).ps);
    }
  }

  static std::string opcode_text(std::uint64_t opcode) {
    static const FieldInfo kField{"opcode", FieldStyle::send_opcode};
    return to_text(kField, opcode);
  }

  const TraceHeader& header_;
  std::array<std::uint64_t, std::size_t(EventKind::count)> counts_{};
  std::vector<Owner> hosts_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, QueuePair> qps_;
};

}  // namespace

TraceNumbers trace_numbers(const std::filesystem::path& trace, const std::string& name) {
  std::ifstream in(trace, std::ios::binary);
  if (!in) throw TraceError(fmt::format("{}: {}", name, std::strerror(errno)));
  TraceReader reader(in, name);
  TraceSummary summary(reader.header());
  while (const auto event = reader.next()) summary.add(*event);
  return {reader.header(), summary.numbers(reader.end())};
}

bool is_statistic(const std::string& number) {
  return number.ends_with("_per_s") || number.find(".latency_ps.") != number.npos;
}

}  // namespace rnicsim::sim::check
