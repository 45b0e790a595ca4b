// SPDX-License-Identifier: Apache-2.0
#include "sim/bench/agents/ping_pong.h"

#include <fmt/format.h>

#include <cstring>

#include "sim/bench/plan.h"

namespace rnicsim::sim::bench {

PingPong::PingPong(Station& station, const std::vector<std::unique_ptr<Station>>& all, FlowState& state,
                   Control& control, host::CpuPort& port, std::string name)
    : station_(station),
      peer_(*all[station.plan().qps.front().agent]),
      flow_(station.flow()),
      state_(state),
      control_(control),
      port_(port),
      name_(std::move(name)),
      bytes_(flow_.longest().bytes),
      landing_(ping_pong_landing(flow_)) {}

void PingPong::run() {
  port_.wait_until(state_.begin);
  Duration posted{};
  while (goes_on()) {
    ++turn_;
    if (!begins()) await_answer();
    if (!goes_on()) break;
    const auto at = look_at_clock();
    if (begins() && turn_ > 1) count(at - posted);
    posted = at;
    post();
    await_completion();
    if (begins()) await_answer();
  }
  if (begins()) --state_.senders;
}

bool PingPong::goes_on() {
  if (control_.stopping) return false;
  return !begins() || (!state_.stopped && port_.thread_time() < state_.end);
}

Duration PingPong::look_at_clock() {
  port_.charge(abi::CpuCost::clock_read, 1);
  return port_.thread_time();
}

void PingPong::post() {
  const auto& own = station_.regions().front();
  const auto& remote = peer_.regions().front();
  *reinterpret_cast<volatile std::uint8_t*>(own.address + bytes_ - 1) = static_cast<std::uint8_t>(turn_);
  ibv_sge sge{own.address, static_cast<std::uint32_t>(bytes_), own.lkey};
  ibv_send_wr wr{};
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED | (bytes_ <= flow_.inline_most.bytes ? unsigned(IBV_SEND_INLINE) : 0u);
  wr.wr.rdma.remote_addr = remote.address + landing_;
  wr.wr.rdma.rkey = remote.rkey;
  if (begins()) {
    state_.posted_by(station_.plan().place, 1);
    state_.progress = port_.thread_time();
  }
  ibv_send_wr* bad = nullptr;
  if (const int error = ibv_post_send(station_.qps().front(), &wr, &bad))
    control_.fail(fmt::format("{}: ibv_post_send: {}", name_, std::strerror(error)));
}

void PingPong::await_completion() {
  while (!control_.stopping) {
    ibv_wc completion{};
    const int count = ibv_poll_cq(station_.cq(), 1, &completion);
    if (count == 0) continue;
    if (count < 0 || completion.status != IBV_WC_SUCCESS)
      control_.fail(fmt::format("{}: an operation ended with: {}", name_, ibv_wc_status_str(completion.status)));
    return;
  }
}

void PingPong::await_answer() {
  const auto* last =
      reinterpret_cast<const volatile std::uint8_t*>(station_.regions().front().address + landing_ + bytes_ - 1);
  port_.settle();
  while (*last != static_cast<std::uint8_t>(turn_) && !control_.stopping) port_.wait_visible();
  if (!begins()) return;
  const auto at = port_.thread_time();
  state_.completed_by(station_.plan().place, state_.stopped ? nullptr : state_.interval_of(at), at, 1);
}

void PingPong::count(Duration round_trip) {
  const auto at = port_.thread_time();
  state_.progress = at;
  auto* interval = state_.stopped ? nullptr : state_.interval_of(at);
  state_.observe(interval, at, 1);
  if (interval == nullptr) return;
  interval->latency.add(Duration{round_trip.ps / 2});
  if (state_.count(*interval, 0, at)) control_.report();
}

std::string PingPong::describe() const { return fmt::format("{}: waits in turn {} of a ping-pong", name_, turn_); }

}  // namespace rnicsim::sim::bench
