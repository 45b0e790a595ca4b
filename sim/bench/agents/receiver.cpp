// SPDX-License-Identifier: Apache-2.0
#include "sim/bench/agents/receiver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace rnicsim::sim::bench {

Receiver::Receiver(Station& station, FlowState& state, Control& control, std::string name)
    : station_(station),
      flow_(station.flow()),
      state_(state),
      control_(control),
      name_(std::move(name)),
      walk_(flow_, station.plan().region, station.regions()) {
  for (std::size_t i = 0; i < station.qps().size(); ++i) places_.push_back(walk_.first(station.plan().first_place + i));
  for (std::size_t i = 0; i < kPostMost; ++i) {
    wrs_[i].sg_list = &sges_[i];
    wrs_[i].num_sge = 1;
  }
}

void Receiver::fill() {
  const std::size_t queues = station_.srq() != nullptr ? 1 : places_.size();
  for (std::size_t queue = 0; queue < queues; ++queue)
    for (std::size_t left = flow_.receives(); left != 0;) {
      const auto count = std::min(left, kPostMost);
      post(queue, count);
      left -= count;
    }
}

void Receiver::post(std::size_t queue, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    auto& place = places_[queue];
    const auto& region = walk_.region(place);
    sges_[i] = {region.address + place.offset, static_cast<std::uint32_t>(flow_.place().bytes), region.lkey};
    wrs_[i].wr_id = queue;
    wrs_[i].next = i + 1 < count ? &wrs_[i + 1] : nullptr;
    if (walk_.moves()) walk_.advance(place, generator_);
  }
  ibv_recv_wr* bad = nullptr;
  if (station_.srq() != nullptr) {
    if (const int error = ibv_post_srq_recv(station_.srq(), wrs_.data(), &bad))
      control_.fail(fmt::format("{}: ibv_post_srq_recv: {}", name_, std::strerror(error)));
    return;
  }
  if (const int error = ibv_post_recv(station_.qps()[queue], wrs_.data(), &bad))
    control_.fail(
        fmt::format("{}, qp {:#x}: ibv_post_recv: {}", name_, station_.qps()[queue]->qp_num, std::strerror(error)));
}

void Receiver::run() {
  while (!control_.stopping) {
    const int count = ibv_poll_cq(station_.cq(), kPollMost, completions_.data());
    if (count < 0) return control_.fail(fmt::format("{}: ibv_poll_cq failed", name_));
    if (count > 0) state_.backlog.add(now(), -count);
    for (int i = 0; i < count && !control_.stopping;) {
      const auto& first = completions_[static_cast<std::size_t>(i)];
      if (first.status != IBV_WC_SUCCESS)
        return control_.fail(fmt::format("{}, qp {:#x}: a receive ended with: {}", name_, first.qp_num,
                                         ibv_wc_status_str(first.status)));
      // Posts receives for consecutive completions of one QP together.
      int last = i + 1;
      while (last < count && completions_[static_cast<std::size_t>(last)].wr_id == first.wr_id &&
             completions_[static_cast<std::size_t>(last)].status == IBV_WC_SUCCESS)
        ++last;
      received_ += static_cast<std::uint64_t>(last - i);
      post(first.wr_id, static_cast<std::size_t>(last - i));
      i = last;
    }
  }
}

std::string Receiver::describe() const {
  if (station_.srq() != nullptr)
    return fmt::format("{}: {} receives posted for {} QPs together, {} messages received", name_, flow_.receives(),
                       places_.size(), received_);
  return fmt::format("{}: {} receives posted on each of {} QPs, {} messages received", name_, flow_.receives(),
                     places_.size(), received_);
}

}  // namespace rnicsim::sim::bench
