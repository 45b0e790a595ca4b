#include "sim/trace/trace_source.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "sim/config/config_error.h"

namespace rnicsim::sim {
namespace {

std::ifstream open(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw ConfigError(fmt::format("{}: {}", shown(path), std::strerror(errno)));
  return file;
}

}  // namespace

TraceSource::TraceSource(const std::string& path, const FilterOptions& options)
    : file_(open(path)), reader_(file_, path), filter_(options, reader_.header()) {}

std::optional<TraceEvent> TraceSource::next() {
  while (auto event = reader_.next()) {
    if (filter_.is_past(*event)) {
      end_ = event->at;
      return std::nullopt;
    }
    if (filter_.takes(*event)) return event;
  }
  end_ = reader_.end();
  return std::nullopt;
}

}  // namespace rnicsim::sim
