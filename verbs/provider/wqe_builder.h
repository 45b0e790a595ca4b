// SPDX-License-Identifier: Apache-2.0
// Builds a send WQE by appending segments in private memory. The device sees nothing of it until SendRing::post()
// copies the complete WQE into the ring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "model/abi/queue.h"

namespace rnicsim::provider {

inline constexpr std::size_t kSegmentBytes = 16;  // a WQE is a whole number of segments

class WqeBuilder {
 public:
  // `blocks`: longest WQE of the QP, in 64-byte blocks.
  explicit WqeBuilder(std::uint32_t blocks = abi::kMaxWqeBlocks)
      : bytes_(std::make_unique<std::byte[]>(blocks * abi::kSendBlock)), capacity_(blocks * abi::kSendBlock) {}

  // `flags` are abi::ControlSegment's; `immediate` in CPU order.
  void begin(abi::SendOpcode opcode, std::uint32_t flags, std::uint32_t immediate = 0);
  // UD: the first segment after the control segment. Its contents may be set later, by set_datagram().
  void datagram(const abi::DatagramSegment& segment = {});
  void set_datagram(const abi::DatagramSegment& segment);
  // XRC: the first segment of a WQE with data. Its contents may be set later.
  void shared_queue(std::uint32_t srqn = 0);
  void set_shared_queue(std::uint32_t srqn);
  void remote_address(std::uint64_t address, std::uint32_t rkey);
  void atomic(std::uint64_t swap_add, std::uint64_t compare);
  void bind(const abi::BindSegment& segment);
  // TSO: `headers` begin each frame; `mss` is the number of data bytes behind them in a frame.
  void segmentation(std::uint16_t mss, std::span<const std::byte> headers);
  void data(std::uint64_t address, std::uint32_t bytes, std::uint32_t lkey);
  // Adds one inline segment: begin_inline(), any number of inline_bytes(), end_inline().
  void begin_inline();
  void inline_bytes(std::span<const std::byte> piece);
  void end_inline();

  // False: a segment did not fit, and the WQE must not be posted.
  bool fits() const { return fits_; }
  std::size_t size() const { return size_; }
  std::uint32_t blocks() const { return std::uint32_t((size_ + abi::kSendBlock - 1) / abi::kSendBlock); }
  bool signaled() const;

 private:
  friend class SendRing;
  std::byte* take(std::size_t bytes);
  void pad();
  template <class Segment>
  void append(const Segment& segment);
  abi::ControlSegment& control() { return *reinterpret_cast<abi::ControlSegment*>(bytes_.get()); }

  std::unique_ptr<std::byte[]> bytes_;
  std::size_t capacity_ = 0;
  std::size_t size_ = 0;
  std::size_t inline_at_ = 0;
  std::uint32_t flags_ = 0;
  bool fits_ = true;
};

// Size in bytes of a WQE with `sges` data segments, or with `inline_bytes` of inline data, for the transport's longest
// opcode that may carry them (RC and XRC: an atomic for segments, RDMA WRITE for inline data).
std::size_t wqe_bytes_with_sges(abi::Transport transport, std::uint32_t sges);
std::size_t wqe_bytes_with_inline(abi::Transport transport, std::uint32_t inline_bytes);
// Bytes before the data segments of a TSO WQE with `header_bytes` of headers; 0 for none.
std::size_t wqe_bytes_of_segmentation(std::uint32_t header_bytes);
// Inline data in bytes that a WQE of `blocks` can hold.
std::uint32_t inline_capacity(abi::Transport transport, std::uint32_t blocks);

}  // namespace rnicsim::provider
