// SPDX-License-Identifier: Apache-2.0
#include "verbs/provider/send_ring.h"

#include <array>
#include <bit>
#include <cstring>

#include "model/abi/device.h"
#include "verbs/provider/wqe_builder.h"

namespace rnicsim::provider {

namespace {
constexpr std::uint32_t kBlueFlameBlocks = abi::uar::kBlueFlameBytes / abi::kSendBlock;
constexpr std::uint32_t kRecordMask = 0xffff;
}  // namespace

SendRing::SendRing(const Layout& layout, DmaBuffer ring, abi::QpDoorbellRecord* record, Uar* uar)
    : layout_(layout),
      ring_(ring),
      record_(record),
      uar_(uar),
      mask_((1u << layout.log_blocks) - 1),
      slots_(std::size_t(1) << layout.log_blocks) {}

void SendRing::post(WqeBuilder& wqe, std::uint64_t wr_id) {
  abi::ControlSegment& control = wqe.control();
  control.wqe_index = std::uint16_t(producer_);
  control.segments = std::uint8_t(wqe.size() / kSegmentBytes);
  control.qpn_flags = layout_.qpn << 8 | wqe.flags_;
  copy_in(wqe.bytes_.get(), wqe.size());
  slots_[producer_ & mask_] = {wr_id, wqes_ + 1};
  producer_ += wqe.blocks();
  ++wqes_;
}

// Copies of constant length compile to plain moves, without a call of memcpy.
void SendRing::copy_in(const std::byte* wqe, std::size_t bytes) {
  const std::size_t begin = std::size_t(producer_) * abi::kSendBlock;
  const std::size_t mask = (std::size_t(mask_) + 1) * abi::kSendBlock - 1;
  for (std::size_t at = 0; at < bytes; at += kSegmentBytes)
    std::memcpy(ring_.memory + ((begin + at) & mask), wqe + at, kSegmentBytes);
}

bool SendRing::ring() {
  if (all_rung()) return false;
  const std::uint32_t blocks = producer_ - rung_producer_;
  publish_be(record_->send_producer, producer_ & kRecordMask);
  if (layout_.blue_flame && wqes_ - rung_wqes_ == 1 && blocks <= kBlueFlameBlocks) {
    blue_flame(blocks);
  } else {
    uar_->ring_send(layout_.qpn, producer_ & kRecordMask);
  }
  rung_producer_ = producer_;
  rung_wqes_ = wqes_;
  return true;
}

void SendRing::blue_flame(std::uint32_t blocks) {
  alignas(64) std::array<std::byte, abi::uar::kBlueFlameBytes> window;
  for (std::uint32_t i = 0; i < blocks; ++i) {
    std::memcpy(window.data() + std::size_t(i) * abi::kSendBlock, block(rung_producer_ + i), abi::kSendBlock);
  }
  uar_->blue_flame(std::span(window).first(std::size_t(blocks) * abi::kSendBlock));
}

void SendRing::rollback(const Mark& mark) {
  producer_ = mark.blocks;
  wqes_ = mark.wqes;
}

std::uint64_t SendRing::retire(std::uint16_t wqe_index) {
  const Slot& slot = slots_[wqe_index & mask_];
  const std::uint64_t wr_id = slot.wr_id;
  retired_.store(slot.retired_after, std::memory_order_release);
  return wr_id;
}

void SendRing::reset() {
  producer_ = rung_producer_ = 0;
  wqes_ = rung_wqes_ = 0;
  retired_.store(0, std::memory_order_release);
  if (record_ != nullptr) publish_be(record_->send_producer, 0u);
}

std::uint8_t log_send_blocks(std::uint32_t capacity, std::uint32_t wqe_blocks) {
  return std::uint8_t(std::bit_width(std::bit_ceil(std::uint64_t(capacity) * wqe_blocks)) - 1);
}

}  // namespace rnicsim::provider
