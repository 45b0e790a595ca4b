// SPDX-License-Identifier: Apache-2.0
#include "verbs/provider/receive_ring.h"

#include <algorithm>
#include <bit>

namespace rnicsim::provider {

ReceiveRing::ReceiveRing(const Layout& layout, DmaBuffer ring, abi::QpDoorbellRecord* record)
    : layout_(layout), ring_(ring), record_(record), slots_(std::size_t(1) << layout.log_entries) {}

void ReceiveRing::open(std::uint64_t wr_id) {
  slots_[posted_ & (slots_.size() - 1)] = wr_id;
  segments_ = 0;
}

void ReceiveRing::segment(std::uint64_t address, std::uint32_t bytes, std::uint32_t lkey) {
  entry(posted_)[segments_++] = {.byte_count = bytes, .lkey = lkey, .address = address};
}

void ReceiveRing::close() {
  // The device ends an entry at its stride; only a shorter list needs an end mark.
  if (segments_ < max_segments()) {
    entry(posted_)[segments_] = {.byte_count = 0u, .lkey = abi::kInvalidLkey, .address = std::uint64_t(0)};
  }
  ++posted_;
}

bool ReceiveRing::ring() {
  if (rung_ == posted_) return false;
  publish_be(record_->receive_producer, std::uint32_t(posted_ & 0xffff));
  rung_ = posted_;
  return true;
}

std::span<const abi::DataSegment> ReceiveRing::segments(std::uint16_t index) const {
  const std::span all(entry(index), max_segments());
  const auto ends = [](const abi::DataSegment& segment) { return segment.lkey == abi::kInvalidLkey; };
  return all.first(std::size_t(std::ranges::find_if(all, ends) - all.begin()));
}

std::uint64_t ReceiveRing::retire(std::uint16_t index) {
  const std::uint64_t retired = retired_.load(std::memory_order_relaxed);
  const std::uint64_t position = retired + std::uint16_t(index - std::uint16_t(retired));
  const std::uint64_t wr_id = slots_[position & (slots_.size() - 1)];
  retired_.store(position + 1, std::memory_order_release);
  return wr_id;
}

void ReceiveRing::reset() {
  posted_ = rung_ = 0;
  retired_.store(0, std::memory_order_release);
  if (record_ != nullptr) publish_be(record_->receive_producer, 0u);
}

abi::DataSegment* ReceiveRing::entry(std::uint64_t position) const {
  const std::size_t index = position & (slots_.size() - 1);
  return reinterpret_cast<abi::DataSegment*>(ring_.memory + (index << layout_.log_stride));
}

std::uint8_t log_receive_stride(std::uint32_t segments) {
  const std::size_t bytes = std::max<std::size_t>(segments, 1) * sizeof(abi::DataSegment);
  return std::uint8_t(std::bit_width(std::bit_ceil(bytes)) - 1);
}

}  // namespace rnicsim::provider
