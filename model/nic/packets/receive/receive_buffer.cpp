// SPDX-License-Identifier: Apache-2.0
#include "model/nic/packets/receive/receive_buffer.h"

#include <algorithm>

#include "model/base/kernel.h"

namespace rnicsim::nic {
namespace {

constexpr auto kBetweenLooks = 200_ns;  // or half a pause, if shorter

}  // namespace

void ReceiveBufferParams::describe(ParamVisitor& visit) {
  visit.param("size", size, "bytes for received frames, until PCIe has taken their payload; docs/timing.md",
              {16 << 10, 1 << 30});
  visit.param("pfc", pfc, "lossless priorities, one bit for each: their sender is paused (IEEE 802.1Qbb)", {0, 255});
  visit.param("xoff", xoff, "bytes at which the sender is paused", {1, 1 << 30});
  visit.param("xon", xon, "bytes at which the sender may send again", {0, 1 << 30});
  visit.param("quanta", quanta, "duration of a requested pause, in times of 512 bits", {2, 65535});
  visit.refuse(xon >= xoff, "xon", "is not less than", "xoff");
  visit.refuse(pfc != 0 && xoff >= size, "xoff", "is not less than", "size");
  visit.idle(pfc == 0, {"xoff", "xon", "quanta"}, "pfc");
}

void ReceiveBufferCounters::describe(CounterVisitor& visit) const {
  visit.counter("rx_discards_phy", rx_discards_phy, "frames", "frames lost: the buffer was full");
  visit.counter("tx_pause", tx_pause, "frames", "frames sent to pause the sender or to end a pause (IEEE 802.1Qbb)");
  visit.most("most_bytes", most_bytes, "bytes", "most bytes in the buffer at a time");
}

ReceiveBuffer::ReceiveBuffer(const ReceiveBufferParams& params, const PriorityMap& priorities, BitRate rate)
    : params_(params),
      priorities_(priorities),
      half_pause_{rate.time_for({params.quanta * PriorityPause::kQuantumBytes}).ps / 2} {}

std::optional<BufferHold> ReceiveBuffer::take(const Frame& frame) {
  const auto bytes = frame.size();
  const auto filled = taken_ + draining() + bytes;
  if (filled > params_.size.bytes) {
    ++counters_.rx_discards_phy;
    return std::nullopt;
  }
  counters_.most_bytes = std::max(counters_.most_bytes, filled);
  if (params_.pfc != 0 && filled >= params_.xoff.bytes) {
    const auto stops = static_cast<std::uint8_t>(params_.pfc & 1u << priorities_.of(frame) & ~paused_);
    if (stops != 0) {
      paused_ |= stops;
      tell(params_.quanta);
      looks_.arm_by(now() + std::min(kBetweenLooks, half_pause_));
    }
  }
  return BufferHold(taken_, bytes);
}

void ReceiveBuffer::tell(std::uint32_t quanta) {
  PriorityPause pauses{.enabled = paused_};
  for (std::size_t priority = 0; priority < kPriorities; ++priority)
    if ((paused_ >> priority & 1) != 0) pauses.quanta[priority] = static_cast<std::uint16_t>(quanta);
  ++counters_.tx_pause;
  told_ = now();
  pause(pauses);
}

void ReceiveBuffer::look() {
  if (taken_ + draining() <= params_.xon.bytes) {
    tell(0);
    paused_ = 0;
    return;
  }
  if (now() >= told_ + half_pause_) tell(params_.quanta);
  looks_.arm(now() + std::min(kBetweenLooks, half_pause_));
}

void ReceiveBuffer::reset() {
  looks_.disarm();
  paused_ = 0;
}

}  // namespace rnicsim::nic
