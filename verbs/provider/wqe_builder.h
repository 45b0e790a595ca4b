// A send WQE in the making: segments appended one after the other in private memory, so that nothing the device can
// read changes before SendRing::post copies the whole into the ring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "model/abi/queue.h"

namespace rnicsim::provider {

class WqeBuilder {
 public:
  // Of a queue pair's longest WQE, or of the longest that there is.
  explicit WqeBuilder(std::uint32_t blocks = abi::kMaxWqeBlocks)
      : bytes_(std::make_unique<std::byte[]>(blocks * abi::kSendBlock)), capacity_(blocks * abi::kSendBlock) {}

  // `flags` are abi::ControlSegment's; `immediate` in CPU order.
  void begin(abi::SendOpcode opcode, std::uint32_t flags, std::uint32_t immediate = 0);
  // UD: what a WQE begins with; it may be known later than what follows.
  void datagram(const abi::DatagramSegment& segment = {});
  void set_datagram(const abi::DatagramSegment& segment);
  // XRC: what a WQE with data begins with; as above.
  void shared_queue(std::uint32_t srqn = 0);
  void set_shared_queue(std::uint32_t srqn);
  void remote_address(std::uint64_t address, std::uint32_t rkey);
  void atomic(std::uint64_t swap_add, std::uint64_t compare);
  void bind(const abi::BindSegment& segment);
  // TSO: the headers of each frame, and how much of the data follows them there.
  void segmentation(std::uint16_t mss, std::span<const std::byte> headers);
  void data(std::uint64_t address, std::uint32_t bytes, std::uint32_t lkey);
  // One inline segment may follow the others: begin_inline, any number of pieces, end_inline.
  void begin_inline();
  void inline_bytes(std::span<const std::byte> piece);
  void end_inline();

  // False when a segment did not fit: the WQE is unusable.
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

// Bytes of a WQE with `sges` data segments, or with `inline_bytes` of inline data, of the transport's longest opcode
// that may carry them (RC and XRC: atomics for segments, RDMA WRITE for inline).
std::size_t wqe_bytes_with_sges(abi::Transport transport, std::uint32_t sges);
std::size_t wqe_bytes_with_inline(abi::Transport transport, std::uint32_t inline_bytes);
// Bytes of a WQE, before its data segments, for TSO with so many bytes of headers; 0 for none.
std::size_t wqe_bytes_of_segmentation(std::uint32_t header_bytes);
// Inline bytes that a WQE of `blocks` can hold.
std::uint32_t inline_capacity(abi::Transport transport, std::uint32_t blocks);

}  // namespace rnicsim::provider
