// SPDX-License-Identifier: Apache-2.0
#include "sim/bench/agents/frame_sink.h"

#include <fmt/format.h>

#include <cstring>

namespace rnicsim::sim::bench {

FrameSink::FrameSink(Station& station, FlowState& state, std::size_t queue, Control& control, host::CpuPort& port,
                     std::string name)
    : station_(station), state_(state), queue_(queue), control_(control), port_(port), name_(std::move(name)) {
  for (std::size_t i = 0; i < wrs_.size(); ++i) {
    wrs_[i].sg_list = &sges_[i];
    wrs_[i].num_sge = 1;
  }
}

// Each receive has a slot of the memory. The receive is posted again with the same slot.
void FrameSink::prepare(std::size_t i, std::uint64_t slot, bool last) {
  const Region& memory = station_.regions().front();
  const auto place = static_cast<std::uint32_t>(station_.flow().place().bytes);
  sges_[i] = {memory.address + slot * frame_slot(station_.flow()), place, memory.lkey};
  wrs_[i].wr_id = slot;
  wrs_[i].next = last ? nullptr : &wrs_[i + 1];
}

void FrameSink::post() {
  ibv_recv_wr* bad = nullptr;
  if (const int error = ibv_post_wq_recv(station_.frames().wq(), wrs_.data(), &bad))
    control_.fail(fmt::format("{}: ibv_post_wq_recv: {}", name_, std::strerror(error)));
}

void FrameSink::fill() {
  const std::uint64_t all = station_.flow().receives();
  for (std::uint64_t slot = 0; slot < all;) {
    std::size_t count = 0;
    for (; count < wrs_.size() && slot < all; ++count, ++slot)
      prepare(count, slot, count + 1 == wrs_.size() || slot + 1 == all);
    post();
  }
}

void FrameSink::run() {
  while (!control_.stopping) {
    const int count = ibv_poll_cq(station_.cq(), kPollMost, completions_.data());
    if (count < 0) return control_.fail(fmt::format("{}: ibv_poll_cq failed", name_));
    if (count == 0) continue;
    state_.backlog.add(now(), -count);
    const Duration at = port_.thread_time();
    for (int i = 0; i < count; ++i) {
      const auto& wc = completions_[static_cast<std::size_t>(i)];
      if (wc.status != IBV_WC_SUCCESS)
        return control_.fail(fmt::format("{}: a receive ended with: {}", name_, ibv_wc_status_str(wc.status)));
      prepare(static_cast<std::size_t>(i), wc.wr_id, i + 1 == count);
    }
    received_ += static_cast<std::uint64_t>(count);
    auto* interval = state_.stopped ? nullptr : state_.interval_of(at);
    state_.observe(interval, at, static_cast<std::uint64_t>(count));
    if (interval != nullptr) interval->received[queue_] += static_cast<std::uint64_t>(count);
    post();
  }
}

std::string FrameSink::describe() const { return fmt::format("{}: {} frames received", name_, received_); }

}  // namespace rnicsim::sim::bench
