// SPDX-License-Identifier: Apache-2.0
// Packet memory of a switch. Frames of lossless priorities are counted at their input (port, priority), other frames at
// their output queue: first in the reserved bytes of that buffer or queue, then in the shared memory up to a threshold;
// lossless frames then in headroom. The threshold is a number of bytes, or alpha times the free shared memory (SAI's
// buffer pools and profiles; Choudhury and Hahne, "Dynamic queue length thresholds").
//
// With alpha, one congested queue takes alpha / (1 + alpha) of the shared memory, n queues take alpha / (1 + n alpha)
// each.
#pragma once

#include <algorithm>
#include <cstdint>

#include "model/base/stats.h"
#include "model/fabric/switch_params.h"

namespace rnicsim::fabric {

class SharedBuffer {
 public:
  // Bytes that one input buffer or output queue uses of each part.
  struct Use {
    std::uint64_t reserved = 0;
    std::uint64_t shared = 0;
    std::uint64_t headroom = 0;
    std::uint64_t total() const { return reserved + shared + headroom; }
  };

  SharedBuffer(const SwitchParams& params, std::size_t ports);

  // False: no memory is shared, and output queues are not counted here.
  bool counts_lossy() const { return counts_lossy_; }

  // --- Lossless input buffers. False: no room; nothing is taken.
  bool take_lossless(Use& use, std::uint32_t bytes);
  bool is_over(const Use& use) const {
    return use.headroom != 0 || (use.reserved >= lossless_.reserved && use.shared >= threshold(lossless_));
  }
  bool may_go_on(const Use& use) const { return use.headroom == 0 && use.total() <= resume_at(); }
  std::uint64_t resume_at() const;  // number of held bytes at which a paused sender may resume
  // --- Lossy output queues. False: no room; nothing is taken.
  bool take_lossy(Use& use, std::uint32_t bytes);

  // Frees headroom first and reserved bytes last.
  void give_back(Use& use, std::uint32_t bytes);

  Counter most_shared() const { return most_shared_; }
  Counter most_headroom() const { return most_headroom_; }

 private:
  struct Limits {
    std::uint64_t reserved = 0;
    double alpha = 0;  // 0: `bytes` is the threshold
    std::uint64_t bytes = 0;
  };

  std::uint64_t free() const { return size_ - std::min(shared_, size_); }
  // Present limit of shared bytes for a buffer or queue.
  std::uint64_t threshold(const Limits& limits) const {
    return limits.alpha == 0 ? limits.bytes : static_cast<std::uint64_t>(limits.alpha * static_cast<double>(free()));
  }
  void add(Use& use, std::uint64_t reserved, std::uint64_t shared, std::uint64_t headroom);

  const bool counts_lossy_;
  Limits lossless_, lossy_;
  std::uint64_t size_ = 0;  // shared bytes
  std::uint64_t headroom_each_ = 0;
  std::uint64_t headroom_size_ = 0;  // headroom of all buffers together
  std::uint64_t xon_ = 0, xon_offset_ = 0;
  std::uint64_t shared_ = 0, headroom_ = 0;  // used bytes
  Counter most_shared_ = 0, most_headroom_ = 0;
};

}  // namespace rnicsim::fabric
