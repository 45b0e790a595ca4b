// SPDX-License-Identifier: Apache-2.0
#include "sim/trace/trace_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "sim/config/config_error.h"

namespace rnicsim::sim {
namespace {

std::unique_ptr<std::istream> open(const std::string& path) {
  auto file = std::make_unique<std::ifstream>(path, std::ios::binary);
  if (!*file) throw ConfigError(fmt::format("{}: {}", shown(path), std::strerror(errno)));
  return file;
}

}  // namespace

TraceSource::TraceSource(const std::string& path, const FilterOptions& options)
    : TraceSource(open(path), path, options) {}

TraceSource::TraceSource(std::unique_ptr<std::istream> in, const std::string& name, const FilterOptions& options)
    : in_(std::move(in)), reader_(*in_, name), filter_(options, reader_.header()) {
  if (!filter_.chooses_blocks()) return;
  if (const auto* index = reader_.read_index())
    reader_.read_only([chosen = filter_.blocks(*index)](std::size_t block) { return bool(chosen[block]); });
}

void TraceSource::read_only(std::function<bool(const TraceIndex& index, std::size_t block)> wanted) {
  if (const auto* index = reader_.read_index())
    reader_.read_only([index, wanted = std::move(wanted)](std::size_t block) { return wanted(*index, block); });
}

std::optional<TraceEvent> TraceSource::next() {
  std::optional<TraceEvent> event(std::in_place);
  if (!next(*event)) event.reset();
  return event;
}

bool TraceSource::next(TraceEvent& event) {
  while (reader_.next(event)) {
    if (filter_.is_past(event)) {
      end_ = *filter_.to();
      return false;
    }
    if (filter_.takes(event)) return true;
  }
  end_ = filter_.to() ? std::min(*filter_.to(), reader_.end()) : reader_.end();
  return false;
}

}  // namespace rnicsim::sim
