// SPDX-License-Identifier: Apache-2.0
#include "sim/check/trace_numbers.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "sim/trace/request_summary.h"
#include "sim/trace_file/trace_reader.h"

namespace rnicsim::sim::check {
namespace {

constexpr double kPsPerS = 1e12;

std::string opcode_text(std::uint64_t opcode) {
  static const FieldInfo kField{"opcode", FieldStyle::send_opcode};
  return to_text(kField, opcode);
}

void put(const std::string& name, const RequestTotals& totals, Numbers& result) {
  if (totals.messages == 0 || totals.interval().ps == 0) return;
  const double seconds = double(totals.interval().ps) / kPsPerS;
  result[name + ".messages_per_s"] = double(totals.messages) / seconds;
  result[name + ".goodput_bits_per_s"] = double(totals.bytes) * 8 / seconds;
  for (const auto& [opcode, latency] : totals.latencies) {
    const auto path = fmt::format("{}.{}.latency_ps", name, opcode_text(opcode));
    result[path + ".p50"] = double(latency.percentile(0.5).ps);
    result[path + ".p99"] = double(latency.percentile(0.99).ps);
  }
}

}  // namespace

TraceNumbers trace_numbers(const std::filesystem::path& trace, const std::string& name) {
  std::ifstream in(trace, std::ios::binary);
  if (!in) throw TraceError(fmt::format("{}: {}", name, std::strerror(errno)));
  TraceReader reader(in, name);
  const auto& hosts = reader.header().hosts;
  RequestSummary summary(hosts.size());
  std::array<std::uint64_t, std::size_t(EventKind::count)> counts{};
  for (TraceEvent event; reader.next(event);) {
    ++counts[std::size_t(event.kind)];
    summary.add(event);
  }
  Numbers numbers{{"end_ps", double(reader.end().ps)}};
  for (std::size_t kind = 1; kind < counts.size(); ++kind)
    if (counts[kind] != 0) numbers[fmt::format("events.{}", info(EventKind(kind)).name)] = double(counts[kind]);
  for (std::size_t host = 0; host < hosts.size(); ++host) put(hosts[host], summary.hosts()[host], numbers);
  summary.each_queue_pair([&](std::uint32_t host, std::uint32_t qp, const RequestTotals& totals) {
    put(fmt::format("{}.qp[{:#x}]", hosts[host], qp), totals, numbers);
  });
  return {reader.header(), std::move(numbers)};
}

bool is_statistic(const std::string& number) {
  return number.ends_with("_per_s") || number.find(".latency_ps.") != number.npos;
}

}  // namespace rnicsim::sim::check
