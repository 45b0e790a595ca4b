// SPDX-License-Identifier: Apache-2.0
#include "sim/waterfall/congestion_tracks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/base/kernel.h"
#include "model/fabric/switch.h"
#include "model/nic/blocks.h"
#include "model/nic/nic.h"
#include "model/nic/packets/port.h"
#include "model/nic/seam/qp_engine.h"
#include "sim/adapter.h"
#include "sim/config/config.h"
#include "sim/system.h"
#include "sim/waterfall/timeline_lines.h"

namespace rnicsim::sim {
namespace {

constexpr double kGigabit = 1e9;

}  // namespace

void PauseTrack::pause(Duration at, Duration until) {
  settle(at);
  tracks_.add(track_, at, until > at ? 1 : 0);
  until_ = std::max(until, at);
}

void PauseTrack::settle(Duration at) {
  if (until_ <= at) tracks_.add(track_, until_, 0);
}

CongestionTracks::CongestionTracks(System& system, std::size_t most)
    : tracks_(most), switches_(system.config().topology.switches) {
  for (std::uint32_t i = 0; i < system.adapters(); ++i) {
    lines_.push_back(static_cast<double>(system.config().nic_of(i).port.rate.bits_per_second));
    watch_nic(i, system.adapter(i));
  }
  queues_.resize(system.switches());
  for (std::uint32_t i = 0; i < system.switches(); ++i) watch_switch(i, system);
}

void CongestionTracks::watch_nic(std::uint32_t index, Adapter& adapter) {
  const auto& nic = adapter.nic().blocks();
  nic.engine.trace().control_changed.subscribe(
      [this, index](const nic::ControlChanged& changed) { add(index, changed); });
  nic.engine.trace().cnp_taken.subscribe([this, index](const nic::CnpTaken& taken) {
    auto& qp = tracks_of(index, taken.qpn.value);
    tracks_.add(*qp.cnps, now(), static_cast<double>(++qp.cnps_taken));
  });
  nic.port.paused.subscribe([this, index](const nic::PriorityPaused& paused) {
    auto& track = paused_ports_[{index, paused.priority}];
    if (track == nullptr) track = &make_pause(index + 1, fmt::format("port.p{}", paused.priority));
    track->pause(now(), paused.until);
  });
}

void CongestionTracks::watch_switch(std::uint32_t index, System& system) {
  const auto names = system.config().topology.port_names(index);
  const auto process = static_cast<std::uint32_t>(lines_.size()) + index + 1;
  queues_[index].resize(names.size());
  const auto name_of = [names](std::uint32_t port, std::uint8_t priority) {
    return fmt::format("port.{}.p{}", names[port], priority);
  };
  auto& box = system.switch_at(index);
  box.queue_changed.subscribe([this, index, process, name_of](const fabric::QueueChanged& queue) {
    auto& track = queues_[index][queue.port][queue.priority].bytes;
    if (track == nullptr) {
      track = &tracks_.make(process, name_of(queue.port, queue.priority) + " queue", "bytes");
      tracks_.add(*track, {}, 0);
    }
    tracks_.add(*track, now(), static_cast<double>(queue.bytes));
  });
  box.queue_paused.subscribe([this, index, process, name_of](const fabric::QueuePaused& queue) {
    auto& track = queues_[index][queue.port][queue.priority].paused;
    if (track == nullptr) track = &make_pause(process, name_of(queue.port, queue.priority));
    track->pause(now(), queue.until);
  });
}

PauseTrack& CongestionTracks::make_pause(std::uint32_t process, const std::string& name) {
  return pauses_.emplace_back(tracks_, tracks_.make(process, name + " paused", "0 or 1"));
}

CongestionTracks::QpTracks& CongestionTracks::tracks_of(std::uint32_t host, std::uint32_t qpn) {
  const auto [found, made] = qps_.try_emplace({host, qpn});
  auto& qp = found->second;
  if (!made) return qp;
  const auto make = [&](const char* what, const char* unit) {
    return &tracks_.make(host + 1, fmt::format("qp {} {}", qpn, what), unit);
  };
  qp = {make("rate", "Gb/s"), make("target", "Gb/s"), make("alpha", "of 1"), make("window", "bytes"),
        make("CNPs", "heard")};
  tracks_.add(*qp.cnps, {}, 0);
  return qp;
}

// A rate without a limit is shown as the line rate. A control without a window gets no window track.
void CongestionTracks::add(std::uint32_t host, const nic::ControlChanged& changed) {
  const auto& qp = tracks_of(host, changed.qpn.value);
  const auto shown = [&](double rate) { return std::min(rate, lines_[host]) / kGigabit; };
  tracks_.add(*qp.rate, now(), shown(changed.state.rate));
  tracks_.add(*qp.target, now(), shown(changed.state.target));
  tracks_.add(*qp.alpha, now(), changed.state.alpha);
  if (changed.window != roce::Allowance::kNoWindow) tracks_.add(*qp.window, now(), static_cast<double>(changed.window));
}

std::string CongestionTracks::text(Duration end) {
  for (auto& pause : pauses_) pause.settle(end);
  std::string text;
  std::set<std::uint32_t> processes;
  for (const auto& track : tracks_.tracks()) {
    if (!track.has_changed()) continue;
    track.append_to(text);
    processes.insert(track.process());
  }
  for (std::uint32_t i = 0; i < switches_.size(); ++i)
    if (const auto process = static_cast<std::uint32_t>(lines_.size()) + i + 1; processes.contains(process))
      timeline::append_process_name(text, process, switches_[i]);
  return text;
}

}  // namespace rnicsim::sim
