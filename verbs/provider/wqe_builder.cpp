// SPDX-License-Identifier: Apache-2.0
#include "verbs/provider/wqe_builder.h"

#include <algorithm>
#include <cstring>

namespace rnicsim::provider {

namespace {

constexpr std::size_t whole_segments(std::size_t bytes) {
  return (bytes + kSegmentBytes - 1) / kSegmentBytes * kSegmentBytes;
}

constexpr std::size_t before_inline(abi::Transport transport) {
  std::size_t before = sizeof(abi::ControlSegment) + sizeof(abi::InlineHeader);
  switch (transport) {
    case abi::Transport::rc:
    case abi::Transport::uc: before += sizeof(abi::RemoteAddressSegment); break;
    case abi::Transport::ud: before += sizeof(abi::DatagramSegment); break;
    case abi::Transport::xrc_send: before += sizeof(abi::XrcSegment) + sizeof(abi::RemoteAddressSegment); break;
    case abi::Transport::xrc_recv:
    case abi::Transport::raw: break;
  }
  return before;
}

}  // namespace

void WqeBuilder::begin(abi::SendOpcode opcode, std::uint32_t flags, std::uint32_t immediate) {
  size_ = 0;
  fits_ = true;
  flags_ = flags;
  abi::ControlSegment segment;
  segment.opcode = opcode;
  segment.immediate = immediate;
  append(segment);
}

void WqeBuilder::datagram(const abi::DatagramSegment& segment) { append(segment); }

void WqeBuilder::set_datagram(const abi::DatagramSegment& segment) {
  if (fits_) std::memcpy(bytes_.get() + sizeof(abi::ControlSegment), &segment, sizeof segment);
}

void WqeBuilder::shared_queue(std::uint32_t srqn) { append(abi::XrcSegment{.srqn = srqn}); }

void WqeBuilder::set_shared_queue(std::uint32_t srqn) {
  const abi::XrcSegment segment{.srqn = srqn};
  if (fits_) std::memcpy(bytes_.get() + sizeof(abi::ControlSegment), &segment, sizeof segment);
}

void WqeBuilder::remote_address(std::uint64_t address, std::uint32_t rkey) {
  append(abi::RemoteAddressSegment{.address = address, .rkey = rkey});
}

void WqeBuilder::atomic(std::uint64_t swap_add, std::uint64_t compare) {
  append(abi::AtomicSegment{.swap_add = swap_add, .compare = compare});
}

void WqeBuilder::bind(const abi::BindSegment& segment) { append(segment); }

void WqeBuilder::segmentation(std::uint16_t mss, std::span<const std::byte> headers) {
  append(abi::TsoSegment{.mss = mss, .header_bytes = std::uint16_t(headers.size())});
  if (std::byte* at = take(headers.size())) std::memcpy(at, headers.data(), headers.size());
  pad();
}

void WqeBuilder::data(std::uint64_t address, std::uint32_t bytes, std::uint32_t lkey) {
  append(abi::DataSegment{.byte_count = bytes, .lkey = lkey, .address = address});
}

void WqeBuilder::begin_inline() {
  inline_at_ = size_;
  append(abi::InlineHeader{});
}

void WqeBuilder::inline_bytes(std::span<const std::byte> piece) {
  if (piece.empty()) return;
  if (std::byte* at = take(piece.size())) std::memcpy(at, piece.data(), piece.size());
}

void WqeBuilder::end_inline() {
  if (!fits_) return;
  const std::size_t count = size_ - inline_at_ - sizeof(abi::InlineHeader);
  const abi::InlineHeader header{abi::InlineHeader::kInline | std::uint32_t(count)};
  std::memcpy(bytes_.get() + inline_at_, &header, sizeof header);
  pad();
}

bool WqeBuilder::signaled() const { return flags_ & abi::ControlSegment::kSignaled; }

std::byte* WqeBuilder::take(std::size_t bytes) {
  fits_ = fits_ && bytes <= capacity_ - size_;
  if (!fits_) return nullptr;
  std::byte* at = bytes_.get() + size_;
  size_ += bytes;
  return at;
}

void WqeBuilder::pad() {
  const std::size_t padding = whole_segments(size_) - size_;
  if (std::byte* at = take(padding)) std::memset(at, 0, padding);
}

template <class Segment>
void WqeBuilder::append(const Segment& segment) {
  if (std::byte* at = take(sizeof segment)) std::memcpy(at, &segment, sizeof segment);
}

std::size_t wqe_bytes_with_sges(abi::Transport transport, std::uint32_t sges) {
  std::size_t before = sizeof(abi::ControlSegment);
  switch (transport) {
    case abi::Transport::xrc_send: before += sizeof(abi::XrcSegment); [[fallthrough]];
    case abi::Transport::rc: before += sizeof(abi::RemoteAddressSegment) + sizeof(abi::AtomicSegment); break;
    case abi::Transport::uc: before += sizeof(abi::RemoteAddressSegment); break;
    case abi::Transport::ud: before += sizeof(abi::DatagramSegment); break;
    case abi::Transport::xrc_recv:
    case abi::Transport::raw: break;
  }
  return before + sges * sizeof(abi::DataSegment);
}

std::size_t wqe_bytes_with_inline(abi::Transport transport, std::uint32_t inline_bytes) {
  return inline_bytes == 0 ? 0 : whole_segments(before_inline(transport) + std::size_t(inline_bytes));
}

std::size_t wqe_bytes_of_segmentation(std::uint32_t header_bytes) {
  return header_bytes == 0 ? 0 : sizeof(abi::TsoSegment) + whole_segments(header_bytes);
}

std::uint32_t inline_capacity(abi::Transport transport, std::uint32_t blocks) {
  const std::size_t bytes = std::size_t(blocks) * abi::kSendBlock;
  return std::uint32_t(bytes - std::min(bytes, before_inline(transport)));
}

}  // namespace rnicsim::provider
