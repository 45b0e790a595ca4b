// SPDX-License-Identifier: Apache-2.0
// Driver side of a QP's send queue: a ring of 64-byte blocks.
//
// Contract with the device: a WQE's bytes are plain stores; the doorbell record is published (release) after them and
// before the doorbell. The device retires WQEs in order and reports that by CQEs only: slots of unsignalled WQEs
// become free when the CQE of a later WQE is polled. The caller serialises post(), ring() and rollback(); retire() may
// run concurrently.
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
    std::uint32_t capacity = 0;  // most outstanding WQEs; the blocks must suffice for any mix of them
    bool blue_flame = true;
  };
  // Position for rollback(). Valid until ring().
  struct Mark {
    std::uint32_t blocks = 0;
    std::uint64_t wqes = 0;
  };

  SendRing() = default;
  SendRing(const Layout& layout, DmaBuffer ring, abi::QpDoorbellRecord* record, Uar* uar);

  std::uint32_t capacity() const { return layout_.capacity; }
  std::uint64_t outstanding() const { return wqes_ - retired_.load(std::memory_order_acquire); }
  bool full() const { return outstanding() >= layout_.capacity; }

  // Precondition: !full(), and wqe.fits().
  void post(WqeBuilder& wqe, std::uint64_t wr_id);
  // Announces the WQEs posted since the last call. False: there are none. A single WQE that fits goes by BlueFlame.
  bool ring();

  bool all_rung() const { return wqes_ == rung_wqes_; }
  std::uint16_t rung() const { return std::uint16_t(rung_producer_); }  // last announced producer index
  Mark mark() const { return {producer_, wqes_}; }
  void rollback(const Mark& mark);

  // For the CQE of the WQE at `wqe_index`: returns its wr_id, frees the WQE and all earlier ones.
  std::uint64_t retire(std::uint16_t wqe_index);
  // For the transition to RESET, at which the device forgets all WQEs.
  void reset();

 private:
  // Per WQE, at the index of its first block.
  struct Slot {
    std::uint64_t wr_id = 0;
    std::uint64_t retired_after = 0;  // number of retired WQEs after this one is retired
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
  std::uint32_t producer_ = 0;  // blocks posted, modulo 2^32
  std::uint64_t wqes_ = 0;      // WQEs posted
  std::uint32_t rung_producer_ = 0;
  std::uint64_t rung_wqes_ = 0;
  std::atomic<std::uint64_t> retired_{0};
};

// log2 of the number of blocks for `capacity` WQEs of at most `wqe_blocks` blocks each.
std::uint8_t log_send_blocks(std::uint32_t capacity, std::uint32_t wqe_blocks);

}  // namespace rnicsim::provider
