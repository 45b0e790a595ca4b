// SPDX-License-Identifier: Apache-2.0
#include "sim/trace/waves.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "sim/config/config_error.h"
#include "sim/trace/fst_writer.h"
#include "sim/trace/pair_progress.h"
#include "sim/trace/trace_source.h"

namespace rnicsim::sim {
namespace {

constexpr std::uint32_t kPsnBits = 24, kWqeBits = 17;

// Signals of a queue pair, with the names of docs/trace.md.
class PairSignals {
 public:
  PairSignals(FstWriter& waves, std::uint32_t qp) : waves_(waves) {
    waves.open_scope(fmt::format("qp_{:#x}", qp));
    state_ = waves.add_text("state");
    sent_ = waves.add_number("sent_psn", kPsnBits);
    acknowledged_ = waves.add_number("acknowledged_psn", kPsnBits);
    psns_ = waves.add_number("outstanding_psns", kPsnBits);
    wqes_ = waves.add_number("outstanding_wqes", kWqeBits);
    waves.close_scope();
  }

  void begin() { set(); }
  void add(const TraceEvent& event) {
    if (progress_.add(event)) set();
  }

 private:
  void set() {
    waves_.set(state_, progress_.state());
    waves_.set(sent_, kPsnBits, progress_.sent_psn());
    waves_.set(acknowledged_, kPsnBits, progress_.acknowledged_psn());
    waves_.set(psns_, kPsnBits, progress_.outstanding_psns());
    waves_.set(wqes_, kWqeBits, progress_.outstanding_wqes());
  }

  FstWriter& waves_;
  PairProgress progress_;
  FstWriter::Signal state_, sent_, acknowledged_, psns_, wqes_;
};

using Place = std::pair<std::uint32_t, std::uint32_t>;  // host, queue pair
using Pairs = std::map<Place, PairSignals>;

Pairs name_signals(const std::string& path, const FilterOptions& filter, FstWriter& waves) {
  TraceSource trace(path, filter);
  std::map<std::uint32_t, std::map<std::uint32_t, bool>> found;
  for (TraceEvent event; trace.next(event);)
    if (const auto qp = qp_of(event)) found[event.host][*qp] = true;
  Pairs pairs;
  for (const auto& [host, qps] : found) {
    waves.open_scope(trace.header().hosts[host]);
    for (const auto& [qp, is_there] : qps) pairs.try_emplace({host, qp}, waves, qp);
    waves.close_scope();
  }
  return pairs;
}

void write(const std::string& path, const FilterOptions& filter, FstWriter& waves) {
  auto pairs = name_signals(path, filter, waves);
  waves.set_time({});
  for (auto& [place, pair] : pairs) pair.begin();
  TraceSource trace(path, filter);
  for (TraceEvent event; trace.next(event);) {
    const auto qp = qp_of(event);
    if (!qp) continue;
    waves.set_time(event.at);
    pairs.at({event.host, *qp}).add(event);
  }
  waves.finish(trace.end());
}

}  // namespace

void export_waves(const std::string& trace, const FilterOptions& filter, const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(trace, error) && !std::filesystem::is_regular_file(trace, error))
    throw ConfigError(fmt::format("{}: waves need a regular file, because the file is read twice", shown(trace)));
  const auto part = path + ".part";
  try {
    FstWriter waves(part);
    write(trace, filter, waves);
    std::filesystem::rename(part, path, error);
  } catch (...) {
    // The FstWriter is destroyed by now, so its file can be removed.
    std::filesystem::remove(part, error);
    throw;
  }
  if (error) throw ConfigError(fmt::format("{}: {}", shown(path), error.message()));
}

}  // namespace rnicsim::sim
