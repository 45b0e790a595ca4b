// SPDX-License-Identifier: Apache-2.0
#include "sim/waterfall/perfetto.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <tuple>

#include "model/base/kernel.h"
#include "sim/adapter.h"
#include "sim/config/config_error.h"
#include "sim/system.h"
#include "sim/waterfall/congestion_tracks.h"
#include "sim/waterfall/timeline_lines.h"
#include "sim/waterfall/waterfall.h"

namespace rnicsim::sim {
namespace {

using timeline::microseconds;

// Tracks of a host, from the top. Slices on one track may only nest, so overlapping slices go to further rows.
enum class Track : std::uint8_t { requests, cpu, pcie, tx, wire, rx };
constexpr const char* kTracks[] = {"work requests", "CPU", "PCIe", "NIC tx", "wire", "NIC rx"};
constexpr std::uint32_t kRowsPerTrack = 1000;

struct Place {
  Track track;
  bool at_peer;
};

Place place_of(Stage stage) {
  switch (stage) {
    case Stage::turnaround:
    case Stage::post:
    case Stage::poll: return {Track::cpu, false};
    case Stage::doorbell:
    case Stage::fetch:
    case Stage::dma:
    case Stage::scatter:
    case Stage::cqe: return {Track::pcie, false};
    case Stage::context:
    case Stage::unit:
    case Stage::retry:
    case Stage::packets:
    case Stage::translation:
    case Stage::tx: return {Track::tx, false};
    case Stage::wire: return {Track::wire, false};
    case Stage::rx: return {Track::rx, true};
    case Stage::placement: return {Track::pcie, true};
    case Stage::answer_tx: return {Track::tx, true};
    case Stage::answer_wire: return {Track::wire, true};
    case Stage::answer_rx: return {Track::rx, false};
  }
  return {Track::cpu, false};
}

struct Slice {
  Duration begin, end;
  std::uint32_t host;
  Track track;
  const Journey* journey;
  std::string name;
  bool first = false, last = false;
  std::uint32_t row = 0;
};

std::uint32_t thread_of(const Slice& slice) { return std::uint32_t(slice.track) * kRowsPerTrack + slice.row + 1; }

std::vector<Slice> slices_of(const std::vector<Journey>& journeys) {
  std::vector<Slice> slices;
  for (const auto& journey : journeys) {
    const auto name = fmt::format("{} {} B", to_string(journey.opcode), journey.bytes);
    slices.push_back({journey.start, journey.end.back(), journey.host, Track::requests, &journey, name});
    const auto first = slices.size();
    for (std::size_t i = 0; i < kStages; ++i) {
      const auto stage = Stage(i);
      if (journey.time_in(stage) == Duration{}) continue;
      const auto [track, at_peer] = place_of(stage);
      slices.push_back({journey.begin_of(stage), journey.end_of(stage), at_peer ? journey.peer : journey.host, track,
                        &journey, to_string(stage)});
    }
    if (first == slices.size()) continue;
    slices[first].first = true;
    slices.back().last = true;
  }
  return slices;
}

// Puts each slice on the first free row of its track.
void lay_out(std::vector<Slice>& slices) {
  std::ranges::stable_sort(slices, {},
                           [](const Slice& slice) { return std::tuple(slice.begin, slice.journey->number); });
  std::map<std::pair<std::uint32_t, Track>, std::vector<Duration>> rows;
  for (auto& slice : slices) {
    auto& busy = rows[{slice.host, slice.track}];
    const auto free = std::ranges::find_if(busy, [&](Duration until) { return until <= slice.begin; });
    slice.row = std::min(static_cast<std::uint32_t>(free - busy.begin()), kRowsPerTrack - 1);
    if (free == busy.end())
      busy.push_back(slice.end);
    else
      *free = slice.end;
  }
}

void add_names(std::string& out, const std::vector<std::string>& hosts, const std::vector<Slice>& slices) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> threads;
  for (const auto& slice : slices) {
    const auto* name = kTracks[std::size_t(slice.track)];
    threads[{slice.host, thread_of(slice)}] = slice.row == 0 ? name : fmt::format("{} {}", name, slice.row + 1);
  }
  for (std::size_t host = 0; host < hosts.size(); ++host)
    timeline::append_process_name(out, std::uint32_t(host + 1), hosts[host]);
  for (const auto& [key, name] : threads) timeline::append_thread_name(out, key.first + 1, key.second, name);
}

void add_slice(std::string& out, const Slice& slice) {
  const auto& journey = *slice.journey;
  const auto place =
      fmt::format("\"pid\":{},\"tid\":{},\"ts\":{}", slice.host + 1, thread_of(slice), microseconds(slice.begin));
  out += fmt::format(
      "{{\"ph\":\"X\",\"name\":{},\"cat\":{},{},\"dur\":{},\"args\":{{\"work request\":{},\"qp\":{},"
      "\"wqe\":{},\"ps\":{}}}}},\n",
      timeline::quoted(slice.name), timeline::quoted(to_string(journey.opcode)), place,
      microseconds(slice.end - slice.begin), journey.number, journey.qpn, journey.index, (slice.end - slice.begin).ps);
  if (slice.track == Track::requests || (slice.first && slice.last)) return;
  const auto* phase = slice.first ? "s" : slice.last ? "f" : "t";
  out += fmt::format("{{\"ph\":\"{}\",\"name\":\"work request\",\"cat\":\"flow\",\"id\":{},{}{}}},\n", phase,
                     journey.number, place, slice.first ? "" : ",\"bp\":\"e\"");
}

}  // namespace

std::string timeline_json(const std::vector<std::string>& hosts, std::vector<Journey> journeys,
                          const std::string& more) {
  std::ranges::sort(journeys, {}, &Journey::number);
  auto slices = slices_of(journeys);
  lay_out(slices);
  std::string out(timeline::kBegin);
  add_names(out, hosts, slices);
  for (const auto& slice : slices) add_slice(out, slice);
  out += more;
  out.resize(out.size() - 2);  // removes the final comma
  return out += timeline::kEnd;
}

Timeline::Timeline(System& system, Waterfall& waterfall, const std::filesystem::path& path, std::uint64_t wqes,
                   std::uint64_t samples)
    : path_(path),
      file_(path, std::ios::binary | std::ios::trunc),
      congestion_(samples != 0 ? std::make_unique<CongestionTracks>(system, samples) : nullptr) {
  if (!file_) throw ConfigError(fmt::format("{}: {}", path.string(), std::strerror(errno)));
  for (std::size_t i = 0; i < system.adapters(); ++i) hosts_.emplace_back(system.adapter(i).label());
  waterfall.finished.subscribe([this, wqes](const Journey& journey) {
    if (!journey.one_way && journey.number < wqes) journeys_.push_back(journey);
  });
}

Timeline::~Timeline() = default;

void Timeline::finish() {
  file_ << timeline_json(hosts_, std::move(journeys_), congestion_ ? congestion_->text(now()) : std::string());
  file_.close();
  if (!file_) throw ConfigError(fmt::format("{}: cannot be written", path_.string()));
}

}  // namespace rnicsim::sim
