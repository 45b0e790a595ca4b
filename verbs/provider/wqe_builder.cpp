#include "verbs/provider/wqe_builder.h"

#include <algorithm>
#include <cstring>

namespace rnicsim::provider {

namespace {

constexpr std::size_t kSegment = 16;
constexpr std::size_t kInlineOverhead =
    sizeof(abi::ControlSegment) + sizeof(abi::RemoteAddressSegment) + sizeof(abi::InlineHeader);

constexpr std::size_t whole_segments(std::size_t bytes) { return (bytes + kSegment - 1) / kSegment * kSegment; }

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

void WqeBuilder::remote_address(std::uint64_t address, std::uint32_t rkey) {
  append(abi::RemoteAddressSegment{.address = address, .rkey = rkey});
}

void WqeBuilder::atomic(std::uint64_t swap_add, std::uint64_t compare) {
  append(abi::AtomicSegment{.swap_add = swap_add, .compare = compare});
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
  std::memcpy(bytes_.data() + inline_at_, &header, sizeof header);
  const std::size_t padding = whole_segments(size_) - size_;
  if (std::byte* at = take(padding)) std::memset(at, 0, padding);
}

bool WqeBuilder::signaled() const { return flags_ & abi::ControlSegment::kSignaled; }

std::byte* WqeBuilder::take(std::size_t bytes) {
  fits_ = fits_ && bytes <= bytes_.size() - size_;
  if (!fits_) return nullptr;
  std::byte* at = bytes_.data() + size_;
  size_ += bytes;
  return at;
}

template <class Segment>
void WqeBuilder::append(const Segment& segment) {
  if (std::byte* at = take(sizeof segment)) std::memcpy(at, &segment, sizeof segment);
}

std::size_t wqe_bytes_with_sges(std::uint32_t sges) {
  return sizeof(abi::ControlSegment) + sizeof(abi::RemoteAddressSegment) + sizeof(abi::AtomicSegment) +
         sges * sizeof(abi::DataSegment);
}

std::size_t wqe_bytes_with_inline(std::uint32_t inline_bytes) {
  return inline_bytes == 0 ? 0 : whole_segments(kInlineOverhead + std::size_t(inline_bytes));
}

std::uint32_t inline_capacity(std::uint32_t blocks) {
  return std::uint32_t(std::size_t(blocks) * abi::kSendBlock - kInlineOverhead);
}

}  // namespace rnicsim::provider
