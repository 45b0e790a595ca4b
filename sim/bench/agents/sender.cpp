// SPDX-License-Identifier: Apache-2.0
#include "sim/bench/agents/sender.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <map>

#include "sim/bench/made.h"
#include "sim/bench/operation.h"

namespace rnicsim::sim::bench {

Sender::Sender(Station& station, const std::vector<std::unique_ptr<Station>>& all, FlowState& state, Control& control,
               host::CpuPort& port, std::string name, std::uint64_t seed)
    : station_(station),
      flow_(station.flow()),
      state_(state),
      control_(control),
      port_(port),
      name_(std::move(name)),
      generator_(seed),
      walk_(flow_, station.plan().region, station.regions()),
      log_slots_(static_cast<std::uint32_t>(std::bit_width(std::bit_ceil(flow_.window)) - 1)),
      wrs_(flow_.batch),
      sges_(flow_.batch),
      pacer_(flow_, state, control, port) {
  const auto& plan = station.plan();
  std::map<std::uint32_t, const Walk*> walks;
  std::map<std::uint32_t, FrameSource*> sources;
  for (std::uint32_t i = 0; i < plan.qps.size(); ++i) {
    const auto& [agent, place] = plan.qps[i];
    const Station& peer = *all[agent];
    auto& walk = walks[agent];
    if (!walk)
      walk = remote_walks_.emplace_back(std::make_unique<Walk>(flow_, peer.plan().region, peer.regions())).get();
    queues_.push_back({.qp = station.qps()[i],
                       .remote_walk = walk,
                       .local = walk_.first(i),
                       .remote = walk->target(peer.plan().first_place + place)});
    if (flow_.transport == Transport::ud) {
      queues_.back().ah = station.address_handle(i);
      queues_.back().remote_qpn = peer.qps()[place]->qp_num;
    }
    if (flow_.transport == Transport::xrc)
      must(ibv_get_srq_num(peer.srq(), &queues_.back().remote_srqn), "ibv_get_srq_num");
    if (flow_.transport == Transport::raw) {
      auto& source = sources[agent];
      if (!source) source = frames_.emplace_back(std::make_unique<FrameSource>(station, peer, generator_())).get();
      queues_.back().frames = source;
    }
    give_back(i);
  }
  posted_.resize(queues_.size() << log_slots_);
  for (const auto& op : flow_.mix) weights_ += op.weight;
  for (std::uint32_t i = 0; i < flow_.batch; ++i) {
    wrs_[i].next = i + 1 < flow_.batch ? &wrs_[i + 1] : nullptr;
    wrs_[i].sg_list = &sges_[i];
    wrs_[i].num_sge = 1;
  }
}

void Sender::run() {
  port_.wait_until(state_.begin);
  pacer_.start();
  while (!control_.stopping && !state_.stopped && port_.thread_time() < state_.end) {
    post_ready();
    while (poll() == kPollMost && !control_.stopping) {
      // The CQ may have more completions.
    }
  }
  --state_.senders;
}

void Sender::post_ready() {
  for (int batches = 0; batches < kPostMost; ++batches) {
    if (flow_.window_per == WindowPer::thread && flow_.window - outstanding_ < flow_.batch) return;
    if (ready_.empty() && ready_random_.empty()) return;
    if (control_.stopping || state_.stopped) return;
    if (!pacer_.may_begin(flow_.batch, outstanding_ != 0)) return;
    post_batch(take_queue());
  }
}

std::uint32_t Sender::take_queue() {
  if (flow_.pick == Pick::random) {
    auto& chosen = ready_random_[draw_below(generator_, ready_random_.size())];
    const auto queue = chosen;
    chosen = ready_random_.back();
    ready_random_.pop_back();
    return queue;
  }
  const auto queue = ready_.front();
  ready_.pop_front();
  return queue;
}

std::size_t Sender::draw_op() {
  auto rest = draw_below(generator_, weights_);
  std::size_t chosen = 0;
  while (rest >= flow_.mix[chosen].weight) rest -= flow_.mix[chosen++].weight;
  return chosen;
}

void Sender::post_batch(std::uint32_t number) {
  Queue& queue = queues_[number];
  const Duration at = port_.thread_time();
  for (std::uint32_t i = 0; i < flow_.batch; ++i) {
    const auto chosen = pick_op();
    if (queue.frames != nullptr)
      fill_frame(wrs_[i], sges_[i], number, flow_.mix[chosen]);
    else
      fill(wrs_[i], sges_[i], queue, flow_.mix[chosen]);
    wrs_[i].wr_id = std::uint64_t(number) << 32 | queue.posted;
    slot(number, queue.posted) = {at, static_cast<std::uint8_t>(chosen)};
    ++queue.posted;
    if (is_signalled(queue)) wrs_[i].send_flags |= IBV_SEND_SIGNALED;
  }
  const bool has_room =
      flow_.window_per == WindowPer::thread || flow_.window - (queue.posted - queue.completed) >= flow_.batch;
  choose_last(queue, has_room);
  if (state_.posted == state_.completed) state_.progress = at;
  outstanding_ += flow_.batch;
  state_.posted_by(station_.plan().place, flow_.batch);
  ibv_send_wr* bad = nullptr;
  if (const int error = ibv_post_send(queue.qp, wrs_.data(), &bad))
    return control_.fail(fmt::format("{}, qp {:#x}: ibv_post_send: {}", name_, queue.qp->qp_num, std::strerror(error)));
  if (has_room) give_back(number);
}

bool Sender::is_signalled(Queue& queue) {
  auto& row = flow_.signal_per == WindowPer::thread ? unsignalled_ : queue.unsignalled;
  if (++row != flow_.signal_every) return false;
  row = 0;
  ++signals_;
  return true;
}

// If the next batch has to wait for a completion, a signalled WQE must be under way: of this queue pair; or of any, if
// the thread's window is full and signal_every counts the WQEs of all queue pairs.
void Sender::choose_last(Queue& queue, bool has_room) {
  const bool full = flow_.window_per == WindowPer::thread && flow_.signal_per == WindowPer::thread &&
                    flow_.window - outstanding_ < 2 * flow_.batch && signals_ == 0;
  if ((has_room && !full) || (wrs_.back().send_flags & IBV_SEND_SIGNALED) != 0) return;
  wrs_.back().send_flags |= IBV_SEND_SIGNALED;
  queue.unsignalled = 0;
  ++signals_;
}

void Sender::fill(ibv_send_wr& wr, ibv_sge& sge, Queue& queue, const MixedOp& op) {
  const auto& local = walk_.region(queue.local);
  const auto& remote = queue.remote_walk->region(queue.remote);
  const auto bytes = static_cast<std::uint32_t>(op.size.bytes);
  sge = {local.address + queue.local.offset, bytes, local.lkey};
  wr.send_flags = may_be_inline(op.op) && op.size <= flow_.inline_most ? IBV_SEND_INLINE : 0;
  if (queue.ah != nullptr) {
    wr.opcode = opcode_of(op.op);
    wr.wr.ud = {queue.ah, queue.remote_qpn, kQkey};
  } else {
    wr.qp_type.xrc.remote_srqn = queue.remote_srqn;
    aim(wr, op.op, {remote.address + queue.remote.offset, remote.lkey, remote.rkey});
  }
  if (walk_.moves()) {
    walk_.advance(queue.local, generator_);
    queue.remote_walk->advance(queue.remote, generator_);
  }
}

// Each frame has its own slot until the frame's completion.
void Sender::fill_frame(ibv_send_wr& wr, ibv_sge& sge, std::uint32_t number, const MixedOp& op) {
  const std::uint64_t turn = queues_[number].posted & ((1u << log_slots_) - 1);
  const std::uint64_t slot = (std::uint64_t(number) << log_slots_) + turn;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = op.size <= flow_.inline_most ? IBV_SEND_INLINE : 0;
  queues_[number].frames->fill(wr, sge, station_.regions().front(), slot * frame_slot(flow_),
                               static_cast<std::uint32_t>(op.size.bytes));
}

int Sender::poll() {
  const int count = ibv_poll_cq(station_.cq(), kPollMost, completions_.data());
  if (count < 0) control_.fail(fmt::format("{}: ibv_poll_cq failed", name_));
  if (count <= 0) return 0;
  const Duration at = port_.thread_time();
  state_.progress = at;
  for (int i = 0; i < count; ++i) complete(completions_[static_cast<std::size_t>(i)], at);
  return count;
}

void Sender::complete(const ibv_wc& wc, Duration at) {
  const auto number = static_cast<std::uint32_t>(wc.wr_id >> 32);
  const auto sequence = static_cast<std::uint32_t>(wc.wr_id);
  Queue& queue = queues_[number];
  if (wc.status != IBV_WC_SUCCESS)
    return control_.fail(fmt::format("{}, qp {:#x}: an operation ended with: {}", name_, queue.qp->qp_num,
                                     ibv_wc_status_str(wc.status)));
  const bool had_room =
      flow_.window_per == WindowPer::thread || flow_.window - (queue.posted - queue.completed) >= flow_.batch;
  const std::uint32_t done = sequence + 1 - queue.completed;
  auto* interval = state_.stopped ? nullptr : state_.interval_of(at);
  if (flow_.transport != Transport::raw) state_.observe(interval, at, done);
  if (interval != nullptr) {
    for (std::uint32_t i = 0; i < done; ++i)
      if (state_.count(*interval, slot(number, queue.completed + i).mix, at)) control_.report();
    interval->latency.add(at - slot(number, sequence).at);
  }
  queue.completed += done;
  outstanding_ -= done;
  --signals_;
  state_.completed_by(station_.plan().place, interval, at, done);
  if (!had_room && flow_.window - (queue.posted - queue.completed) >= flow_.batch) give_back(number);
}

std::string Sender::describe() const {
  std::size_t full = 0;
  for (const auto& queue : queues_) full += queue.posted != queue.completed;
  return fmt::format("{}: {} operations on {} of {} QPs wait for their completions", name_, outstanding_, full,
                     queues_.size());
}

}  // namespace rnicsim::sim::bench
