// SPDX-License-Identifier: Apache-2.0
#include "verbs/provider/shared_receive_ring.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace rnicsim::provider {

namespace {

constexpr std::uint8_t kLeastLogStride = 5;

}  // namespace

SharedReceiveRing::SharedReceiveRing(const Layout& layout, DmaBuffer ring, abi::QpDoorbellRecord* record)
    : layout_(layout), ring_(ring), record_(record), slots_(std::size_t(1) << layout.log_entries) {
  tail_ = std::uint16_t(slots_.size() - 1);
  for (std::uint16_t index = 0; index < tail_; ++index) link(index).next = std::uint16_t(index + 1);
}

std::uint32_t SharedReceiveRing::max_segments() const {
  return std::uint32_t(((1u << layout_.log_stride) - sizeof(abi::SrqNextSegment)) / sizeof(abi::DataSegment));
}

abi::DataSegment* SharedReceiveRing::data(std::uint16_t index) const {
  return reinterpret_cast<abi::DataSegment*>(entry(index) + sizeof(abi::SrqNextSegment));
}

void SharedReceiveRing::open(std::uint64_t wr_id) {
  slots_[head_] = {wr_id, true};
  segments_ = 0;
}

void SharedReceiveRing::segment(std::uint64_t address, std::uint32_t bytes, std::uint32_t lkey) {
  data(head_)[segments_++] = {.byte_count = bytes, .lkey = lkey, .address = address};
}

void SharedReceiveRing::close() {
  // The device ends an entry at its stride; only a shorter list needs an end mark.
  if (segments_ < max_segments())
    data(head_)[segments_] = {.byte_count = 0u, .lkey = abi::kInvalidLkey, .address = std::uint64_t(0)};
  head_ = link(head_).next;
  ++posted_;
  ++outstanding_;
}

void SharedReceiveRing::ring() { publish_be(record_->receive_producer, std::uint32_t(posted_)); }

std::span<const abi::DataSegment> SharedReceiveRing::segments(std::uint16_t index) const {
  if (index >= slots_.size() || !slots_[index].outstanding) return {};
  const std::span<const abi::DataSegment> all(data(index), max_segments());
  const auto ends = [](const abi::DataSegment& segment) { return segment.lkey == abi::kInvalidLkey; };
  return all.first(std::size_t(std::ranges::find_if(all, ends) - all.begin()));
}

std::uint64_t SharedReceiveRing::retire(std::uint16_t index) {
  if (index >= slots_.size() || !slots_[index].outstanding) return 0;
  slots_[index].outstanding = false;
  link(tail_).next = index;
  tail_ = index;
  --outstanding_;
  return slots_[index].wr_id;
}

void SharedReceiveRing::copy_to(DmaBuffer ring, std::uint8_t log_entries) const {
  SharedReceiveRing larger;
  larger.layout_ = {log_entries, layout_.log_stride};
  larger.ring_ = ring;
  std::memcpy(ring.memory, ring_.memory, bytes());
  const std::uint32_t last = (1u << log_entries) - 1;
  std::uint16_t before = tail_;
  for (auto index = std::uint32_t(slots_.size()); index <= last; ++index) {
    larger.link(before).next = std::uint16_t(index);
    before = std::uint16_t(index);
  }
}

void SharedReceiveRing::move_to(DmaBuffer ring, std::uint8_t log_entries) {
  ring_ = ring;
  layout_.log_entries = log_entries;
  slots_.resize(std::size_t(1) << log_entries);
  tail_ = std::uint16_t(slots_.size() - 1);
}

std::uint8_t log_shared_receive_stride(std::uint32_t segments) {
  const std::size_t bytes = sizeof(abi::SrqNextSegment) + segments * sizeof(abi::DataSegment);
  return std::max(kLeastLogStride, std::uint8_t(std::bit_width(std::bit_ceil(bytes)) - 1));
}

}  // namespace rnicsim::provider
