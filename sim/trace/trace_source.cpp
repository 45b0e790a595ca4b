// SPDX-License-Identifier: Apache-2.0
#include "sim/trace/trace_source.h"

#include <fmt/format.h>

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
    : in_(std::move(in)), reader_(*in_, name), filter_(options, reader_.header()) {}

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
  end_ = reader_.end();
  return false;
}

}  // namespace rnicsim::sim
