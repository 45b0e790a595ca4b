// A shared receive queue: entries in one piece of memory, linked in the order in which they will be posted, because
// they come free in any order.
//
// Contract with the device: an entry's segments are plain stores; the doorbell record is published (release) after them
// and is all the announcement there is. The device follows `next` from entry 0 on, as far as the record says. So `next`
// of an entry is settled before the entry is posted, and one entry, the last of the free ones, is never posted: what
// comes free is hung behind it. A CQE names the entry that it frees. The caller serialises all calls.
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
  // All its entries are free.
  SharedReceiveRing(const Layout& layout, DmaBuffer ring, abi::QpDoorbellRecord* record);

  const Layout& layout() const { return layout_; }
  std::size_t bytes() const { return std::size_t(1) << (layout_.log_entries + layout_.log_stride); }
  std::uint32_t capacity() const { return (1u << layout_.log_entries) - 1; }
  std::uint32_t max_segments() const;
  std::uint32_t outstanding() const { return outstanding_; }

  // Fewer than capacity() outstanding: an entry is opened, gets at most max_segments() segments, and is closed.
  void open(std::uint64_t wr_id);
  void segment(std::uint64_t address, std::uint32_t bytes, std::uint32_t lkey);
  void close();
  // Publishes what was closed since the last ring.
  void ring();

  // Those of the entry at `index`, until it is retired; none for an index that is not outstanding.
  std::span<const abi::DataSegment> segments(std::uint16_t index) const;
  // A CQE arrived for the entry at `index`: gives its wr_id and frees it.
  std::uint64_t retire(std::uint16_t index);

  // The same entries, and more, in other memory: made first, in force from `move_to` on.
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
  std::uint16_t head_ = 0;      // the next to be posted
  std::uint16_t tail_ = 0;      // the last free one
  std::uint16_t posted_ = 0;    // ever, modulo 2^16
  std::uint32_t outstanding_ = 0;
  std::uint32_t segments_ = 0;  // of the open entry
};

// log2 of the stride that holds `segments`.
std::uint8_t log_shared_receive_stride(std::uint32_t segments);

}  // namespace rnicsim::provider
