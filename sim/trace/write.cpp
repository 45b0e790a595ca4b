// SPDX-License-Identifier: Apache-2.0
#include "sim/trace/write.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>

#include "sim/config/config_error.h"
#include "sim/results/part_file.h"
#include "sim/trace_file/trace_writer.h"

namespace rnicsim::sim {
namespace {

// A trace file that gets its name when it is complete.
class Output {
 public:
  Output(const std::string& path, const TraceHeader& header)
      : part_(path), file_(part_.path(), std::ios::binary | std::ios::trunc) {
    if (!file_) throw ConfigError(fmt::format("{}: {}", shown(part_.path()), std::strerror(errno)));
    writer_.emplace(file_, header);
  }

  void write(const TraceEvent& event) { writer_->write(event); }
  void finish(Duration end) {
    writer_->finish(end);
    file_.close();
    if (!file_) throw ConfigError(fmt::format("{}: some data was not written", shown(part_.path())));
    part_.take_name();
  }

 private:
  PartFile part_;
  std::ofstream file_;
  std::optional<TraceWriter> writer_;
};

void merge_configuration(const TraceSource& trace, std::map<std::string, std::string>& values, TraceHeader& header) {
  for (const auto& [path, value] : trace.header().configuration) {
    const auto [known, is_new] = values.emplace(path, value);
    if (is_new)
      header.configuration.emplace_back(path, value);
    else if (known->second != value)
      throw ConfigError(
          fmt::format("{}: {} is {}, but {} in an earlier trace", trace.path(), path, value, known->second));
  }
}

TraceHeader merged_header(const std::vector<std::unique_ptr<TraceSource>>& traces) {
  TraceHeader header = traces.front()->header();
  header.hosts.clear();
  header.commands.clear();
  header.configuration.clear();
  std::map<std::string, std::string> values;
  for (const auto& trace : traces) {
    const auto& one = trace->header();
    if (one.seed != header.seed || one.time != header.time)
      throw ConfigError(fmt::format("{}: seed or clock differs from {}", trace->path(), traces.front()->path()));
    for (const auto& host : one.hosts) {
      if (std::ranges::find(header.hosts, host) != header.hosts.end())
        throw ConfigError(fmt::format("{}: host {} is in an earlier trace", trace->path(), host));
      header.hosts.push_back(host);
    }
    header.commands.insert(header.commands.end(), one.commands.begin(), one.commands.end());
    merge_configuration(*trace, values, header);
  }
  return header;
}

}  // namespace

void cut_trace(TraceSource& trace, const std::string& path) {
  Output output(path, trace.header());
  for (TraceEvent event; trace.next(event);) output.write(event);
  output.finish(trace.end());
}

void merge_traces(std::vector<std::unique_ptr<TraceSource>>& traces, const std::string& path) {
  struct Side {
    TraceSource& trace;
    std::uint32_t first_host;
    std::optional<TraceEvent> event;
  };
  Output output(path, merged_header(traces));
  std::vector<Side> sides;
  std::uint32_t hosts = 0;
  for (const auto& trace : traces) {
    sides.push_back({*trace, hosts, trace->next()});
    hosts += static_cast<std::uint32_t>(trace->header().hosts.size());
  }
  const auto time = [](const Side& side) { return side.event ? side.event->at : Duration{INT64_MAX}; };
  for (;;) {
    auto& next = *std::ranges::min_element(sides, {}, time);
    if (!next.event) break;
    next.event->host += next.first_host;
    output.write(*next.event);
    next.event = next.trace.next();
  }
  Duration end;
  for (const auto& side : sides) end = std::max(end, side.trace.end());
  output.finish(end);
}

}  // namespace rnicsim::sim
