// The send queue of a QP: a ring of 64-byte blocks that the driver fills and the device drains.
//
// Contract with the device: a WQE's bytes are plain stores; the doorbell record is published (release) after them and
// before the doorbell. The device retires WQEs in order and says so by CQEs only: the slots of unsignalled WQEs come
// free when a later WQE's CQE is polled. The caller serialises post, ring, rollback; `retire` may run beside them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/abi/queue.h"
#include "verbs/provider/dma.h"
#include "verbs/provider/uar.h"
#include "verbs/provider/wqe_builder.h"

namespace rnicsim::provider {

class SendRing {
 public:
  struct Layout {
    std::uint32_t qpn = 0;
    std::uint8_t log_blocks = 0;
    std::uint32_t capacity = 0;  // WQEs that may be outstanding; any mix of them must fit the blocks
    bool blue_flame = true;
  };
  // A place to go back to: nothing posted after it was rung.
  struct Mark {
    std::uint32_t blocks = 0;
    std::uint64_t wqes = 0;
  };

  SendRing() = default;
  SendRing(const Layout& layout, DmaBuffer ring, abi::QpDoorbellRecord* record, Uar* uar);

  std::uint32_t capacity() const { return layout_.capacity; }
  std::uint64_t outstanding() const { return wqes_ - retired_.load(std::memory_order_acquire); }
  bool full() const { return outstanding() >= layout_.capacity; }

  // Not full, and the builder's segments fit.
  void post(WqeBuilder& wqe, std::uint64_t wr_id);
  // Announces what was posted since the last ring; false when there is nothing. A single WQE goes by BlueFlame.
  bool ring();

  bool all_rung() const { return wqes_ == rung_wqes_; }
  std::uint16_t rung() const { return std::uint16_t(rung_producer_); }  // the last producer announced
  Mark mark() const { return {producer_, wqes_}; }
  void rollback(const Mark& mark);

  // A CQE arrived for the WQE at `wqe_index`: gives its wr_id and frees it and all before it.
  std::uint64_t retire(std::uint16_t wqe_index);
  // The QP went to RESET: the device forgot every WQE.
  void reset();

 private:
  // What software remembers of a WQE, at its first block.
  struct Slot {
    std::uint64_t wr_id = 0;
    std::uint64_t retired_after = 0;  // WQEs retired when this one is
  };

  std::byte* block(std::uint32_t position) const {
    return ring_.memory + std::size_t(position & mask_) * abi::kSendBlock;
  }
  void copy_in(const std::byte* wqe, std::size_t bytes);
  void blue_flame(std::uint32_t blocks);

  Layout layout_;
  DmaBuffer ring_;
  abi::QpDoorbellRecord* record_ = nullptr;
  Uar* uar_ = nullptr;
  std::uint32_t mask_ = 0;
  std::vector<Slot> slots_;
  std::uint32_t producer_ = 0;       // blocks ever posted
  std::uint64_t wqes_ = 0;           // WQEs ever posted
  std::uint32_t rung_producer_ = 0;
  std::uint64_t rung_wqes_ = 0;
  std::atomic<std::uint64_t> retired_{0};
};

// log2 of the blocks needed for `capacity` WQEs of at most `wqe_blocks` each.
std::uint8_t log_send_blocks(std::uint32_t capacity, std::uint32_t wqe_blocks);

}  // namespace rnicsim::provider
