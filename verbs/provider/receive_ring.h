// SPDX-License-Identifier: Apache-2.0
// Driver side of a QP's receive queue: entries of 2^log_stride bytes, each a list of data segments.
//
// Contract with the device: an entry's segments are plain stores; the doorbell record is published (release) after
// them and is the only announcement. The device consumes entries in order and reports that by CQEs. The caller
// serialises posting and ring(); retire() may run concurrently.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/abi/queue.h"
#include "verbs/provider/dma.h"

namespace rnicsim::provider {

class ReceiveRing {
 public:
  struct Layout {
    std::uint8_t log_entries = 0;
    std::uint8_t log_stride = 4;
  };

  ReceiveRing() = default;
  ReceiveRing(const Layout& layout, DmaBuffer ring, abi::QpDoorbellRecord* record);

  std::uint32_t capacity() const { return std::uint32_t(slots_.size()); }
  std::uint32_t max_segments() const { return (1u << layout_.log_stride) / sizeof(abi::DataSegment); }
  std::uint64_t outstanding() const { return posted_ - retired_.load(std::memory_order_acquire); }
  bool full() const { return outstanding() >= capacity(); }
  std::uint16_t next() const { return std::uint16_t(posted_); }  // index of the next entry to post

  // Posts an entry: open(), at most max_segments() calls of segment(), close(). Precondition: !full().
  void open(std::uint64_t wr_id);
  void segment(std::uint64_t address, std::uint32_t bytes, std::uint32_t lkey);
  void close();
  // Publishes the entries closed since the last call. False: there are none.
  bool ring();

  // Segments of the entry at `index`; valid until retire().
  std::span<const abi::DataSegment> segments(std::uint16_t index) const;
  // For the CQE of the entry at `index`: returns its wr_id, frees the entry and all earlier ones.
  std::uint64_t retire(std::uint16_t index);
  void reset();

 private:
  abi::DataSegment* entry(std::uint64_t position) const;

  Layout layout_;
  DmaBuffer ring_;
  abi::QpDoorbellRecord* record_ = nullptr;
  std::vector<std::uint64_t> slots_;  // wr_id
  std::uint64_t posted_ = 0;
  std::uint64_t rung_ = 0;
  std::uint32_t segments_ = 0;  // segments of the open entry so far
  std::atomic<std::uint64_t> retired_{0};
};

// log2 of the entry size in bytes for `segments` data segments.
std::uint8_t log_receive_stride(std::uint32_t segments);

}  // namespace rnicsim::provider
