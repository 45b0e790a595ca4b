// SPDX-License-Identifier: Apache-2.0
// Driver side of a shared receive queue: entries in one memory range, linked in the order in which they will be
// posted. Entries become free in any order.
//
// Contract with the device: an entry's segments are plain stores; the doorbell record is published (release) after
// them and is the only announcement. The device starts at entry 0 and follows `next`, for as many entries as the
// record says. Therefore `next` of an entry must be set before the entry is posted, and one free entry, the last in
// the list, is never posted: a freed entry is linked behind it. A CQE names the entry that it frees. The caller
// serialises all calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/abi/queue.h"
#include "verbs/provider/dma.h"

namespace rnicsim::provider {

class SharedReceiveRing {
 public:
  struct Layout {
    std::uint8_t log_entries = 1;
    std::uint8_t log_stride = 5;
  };

  SharedReceiveRing() = default;
  // All entries are free.
  SharedReceiveRing(const Layout& layout, DmaBuffer ring, abi::QpDoorbellRecord* record);

  const Layout& layout() const { return layout_; }
  std::size_t bytes() const { return std::size_t(1) << (layout_.log_entries + layout_.log_stride); }
  std::uint32_t capacity() const { return (1u << layout_.log_entries) - 1; }
  std::uint32_t max_segments() const;
  std::uint32_t outstanding() const { return outstanding_; }
  std::uint16_t next() const { return head_; }  // index of the next entry to post

  // Posts an entry: open(), at most max_segments() calls of segment(), close(). Precondition: outstanding() <
  // capacity().
  void open(std::uint64_t wr_id);
  void segment(std::uint64_t address, std::uint32_t bytes, std::uint32_t lkey);
  void close();
  // Publishes the entries closed since the last call.
  void ring();

  // Segments of the entry at `index`; valid until retire(). Empty: the entry is not outstanding.
  std::span<const abi::DataSegment> segments(std::uint16_t index) const;
  // For the CQE of the entry at `index`: returns its wr_id and frees the entry.
  std::uint64_t retire(std::uint16_t index);

  // Resize: copy_to() prepares a larger ring in other memory, with the same entries; move_to() switches to it.
  void copy_to(DmaBuffer ring, std::uint8_t log_entries) const;
  void move_to(DmaBuffer ring, std::uint8_t log_entries);

 private:
  struct Slot {
    std::uint64_t wr_id = 0;
    bool outstanding = false;
  };

  std::byte* entry(std::uint16_t index) const { return ring_.memory + (std::size_t(index) << layout_.log_stride); }
  abi::SrqNextSegment& link(std::uint16_t index) const { return *reinterpret_cast<abi::SrqNextSegment*>(entry(index)); }
  abi::DataSegment* data(std::uint16_t index) const;

  Layout layout_;
  DmaBuffer ring_;
  abi::QpDoorbellRecord* record_ = nullptr;
  std::vector<Slot> slots_;
  std::uint16_t head_ = 0;    // next entry to post
  std::uint16_t tail_ = 0;    // last free entry
  std::uint16_t posted_ = 0;  // entries posted, modulo 2^16
  std::uint32_t outstanding_ = 0;
  std::uint32_t segments_ = 0;  // segments of the open entry so far
};

// log2 of the entry size in bytes for `segments` data segments.
std::uint8_t log_shared_receive_stride(std::uint32_t segments);

}  // namespace rnicsim::provider
