// SPDX-License-Identifier: Apache-2.0
#include "sim/bench/agents/sequencer.h"

#include <fmt/format.h>

#include <cstring>
#include <map>

#include "sim/bench/operation.h"

namespace rnicsim::sim::bench {

Sequencer::Sequencer(Station& station, const std::vector<std::unique_ptr<Station>>& all, FlowState& state,
                     Control& control, host::CpuPort& port, std::string name, std::uint64_t seed)
    : station_(station),
      flow_(station.flow()),
      state_(state),
      control_(control),
      port_(port),
      name_(std::move(name)),
      generator_(seed),
      pacer_(flow_, state, control, port) {
  const auto& plan = station.plan();
  std::map<std::uint32_t, const Walk*> walks;
  const auto tracks = tracks_of(plan, flow_);
  for (const auto& sequence : flow_.sequences) weights_ += sequence.weight;
  for (std::uint32_t i = 0; i < tracks; ++i) {
    const auto queue = i % plan.qps.size();
    const auto& [agent, place] = plan.qps[queue];
    const Station& peer = *all[agent];
    auto& walk = walks[agent];
    if (!walk) walk = walks_.emplace_back(std::make_unique<Walk>(flow_, peer.plan().region, peer.regions())).get();
    tracks_.push_back({.qp = station.qps()[queue],
                       .walk = walk,
                       .place = walk->target(peer.plan().first_place + place),
                       .sequence = {},
                       .begun = {}});
    idle_.push_back(std::uint32_t(i));
  }
}

void Sequencer::run() {
  port_.wait_until(state_.begin);
  pacer_.start();
  while (goes_on() && port_.thread_time() < state_.end) {
    while (!idle_.empty() && goes_on() && pacer_.may_begin(1, idle_.size() != tracks_.size())) {
      const auto track = idle_.front();
      idle_.pop_front();
      begin(track);
    }
    while (poll() == kPollMost && goes_on()) {
      // The CQ may have more completions.
    }
  }
  --state_.senders;
}

void Sequencer::begin(std::uint32_t track) {
  tracks_[track].step = 0;
  tracks_[track].sequence = draw_sequence();
  tracks_[track].begun = port_.thread_time();
  if (state_.posted == state_.completed) state_.progress = tracks_[track].begun;
  state_.posted_by(station_.plan().place, 1);
  post(track);
}

const Sequence& Sequencer::draw_sequence() {
  std::size_t chosen = 0;
  if (flow_.sequences.size() > 1) {
    auto rest = draw_below(generator_, weights_);
    while (rest >= flow_.sequences[chosen].weight) rest -= flow_.sequences[chosen++].weight;
  }
  return flow_.sequences[chosen];
}

// Begins with the old value of the lock. With the lock taken this value is 0, and the last write frees the lock with
// it.
std::uint64_t Sequencer::memory_of_track(std::uint64_t track) const {
  return station_.regions().front().address + track * track_bytes(flow_);
}

bool Sequencer::got_lock(std::uint64_t track) const {
  return *reinterpret_cast<const volatile std::uint64_t*>(memory_of_track(track)) == 0;
}

void Sequencer::post(std::uint32_t number) {
  const Track& track = tracks_[number];
  const MixedOp& op = flow_.mix[track.sequence.first + track.step];
  const bool of_lock = is_lock(track) || is_unlock(track);
  const std::uint64_t behind = of_lock || !flow_.locks() ? 0 : Flow::kLockBytes;
  ibv_sge sge{memory_of_track(number) + (of_lock ? 0 : Flow::kLockBytes), static_cast<std::uint32_t>(op.size.bytes),
              station_.regions().front().lkey};
  ibv_send_wr wr{};
  wr.wr_id = number;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  const auto& remote = track.walk->region(track.place);
  aim(wr, op.op, {remote.address + track.place.offset + behind, remote.lkey, remote.rkey});
  if (is_lock(track)) wr.wr.atomic.swap = 1;
  wr.send_flags = IBV_SEND_SIGNALED;
  if (may_be_inline(op.op) && op.size <= flow_.inline_most) wr.send_flags |= IBV_SEND_INLINE;
  ibv_send_wr* bad = nullptr;
  if (const int error = ibv_post_send(track.qp, &wr, &bad))
    control_.fail(fmt::format("{}, qp {:#x}: ibv_post_send: {}", name_, track.qp->qp_num, std::strerror(error)));
}

int Sequencer::poll() {
  const int count = ibv_poll_cq(station_.cq(), kPollMost, completions_.data());
  if (count < 0) control_.fail(fmt::format("{}: ibv_poll_cq failed", name_));
  if (count <= 0) return 0;
  const Duration at = port_.thread_time();
  state_.progress = at;
  for (int i = 0; i < count && !control_.stopping; ++i) complete(completions_[static_cast<std::size_t>(i)], at);
  return count;
}

void Sequencer::complete(const ibv_wc& wc, Duration at) {
  const auto number = static_cast<std::uint32_t>(wc.wr_id);
  Track& track = tracks_[number];
  if (wc.status != IBV_WC_SUCCESS)
    return control_.fail(fmt::format("{}, qp {:#x}: an operation ended with: {}", name_, track.qp->qp_num,
                                     ibv_wc_status_str(wc.status)));
  const bool again = is_lock(track) && !got_lock(number);
  if (!again && is_last(track)) return finish(number, at);
  if (auto* interval = state_.stopped ? nullptr : state_.interval_of(at))
    ++interval->of_mix[track.sequence.first + track.step];
  if (!again) ++track.step;
  post(number);
}

void Sequencer::finish(std::uint32_t number, Duration at) {
  Track& track = tracks_[number];
  auto* interval = state_.stopped ? nullptr : state_.interval_of(at);
  state_.observe(interval, at, 1);
  state_.completed_by(station_.plan().place, interval, at, 1);
  if (interval != nullptr) {
    interval->latency.add(at - track.begun);
    if (state_.count(*interval, track.sequence.first + track.step, at)) control_.report();
  }
  if (track.walk->moves()) track.walk->advance(track.place, generator_);
  idle_.push_back(std::uint32_t(number));
}

std::string Sequencer::describe() const {
  return fmt::format("{}: {} of {} sequences are under way", name_, tracks_.size() - idle_.size(), tracks_.size());
}

}  // namespace rnicsim::sim::bench
