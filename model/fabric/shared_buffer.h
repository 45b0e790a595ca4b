// A switch's packet memory. Frames of priorities without loss count where they came in (port, priority), all others
// where they leave: in the reserved bytes of that buffer or queue first, then in the memory that all of them share, up
// to a threshold; frames without loss also in headroom. The threshold is a number of bytes, or alpha times what is
// free of the shared memory (SAI's buffer pools and profiles; Choudhury and Hahne, "Dynamic queue length thresholds").
//
// One congested queue takes alpha / (1 + alpha) of the shared memory, n of them alpha / (1 + n alpha) each.
#pragma once

#include <algorithm>
#include <cstdint>

#include "model/base/stats.h"
#include "model/fabric/switch_params.h"

namespace rnicsim::fabric {

class SharedBuffer {
 public:
  // Bytes that one input buffer or output queue takes of each part.
  struct Use {
    std::uint64_t reserved = 0;
    std::uint64_t shared = 0;
    std::uint64_t headroom = 0;
    std::uint64_t total() const { return reserved + shared + headroom; }
  };

  SharedBuffer(const SwitchParams& params, std::size_t ports);

  // False: nothing is shared, and output queues are not counted here.
  bool counts_lossy() const { return counts_lossy_; }

  // --- An input buffer without loss. False: there is no room, and nothing is taken.
  bool take_lossless(Use& use, std::uint32_t bytes);
  bool is_over(const Use& use) const {
    return use.headroom != 0 || (use.reserved >= lossless_.reserved && use.shared >= threshold(lossless_));
  }
  bool may_go_on(const Use& use) const { return use.headroom == 0 && use.total() <= resume_at(); }
  std::uint64_t resume_at() const;         // bytes held with which a paused sender may go on
  // --- An output queue that may lose frames. False: there is no room, and nothing is taken.
  bool take_lossy(Use& use, std::uint32_t bytes);

  // Headroom first, reserved bytes last.
  void give_back(Use& use, std::uint32_t bytes);

  Counter most_shared() const { return most_shared_; }
  Counter most_headroom() const { return most_headroom_; }

 private:
  struct Limits {
    std::uint64_t reserved = 0;
    double alpha = 0;                        // 0: `bytes` is the threshold
    std::uint64_t bytes = 0;
  };

  std::uint64_t free() const { return size_ - std::min(shared_, size_); }
  // Shared bytes that a buffer or queue may take now.
  std::uint64_t threshold(const Limits& limits) const {
    return limits.alpha == 0 ? limits.bytes
                             : static_cast<std::uint64_t>(limits.alpha * static_cast<double>(free()));
  }
  void add(Use& use, std::uint64_t reserved, std::uint64_t shared, std::uint64_t headroom);

  const bool counts_lossy_;
  Limits lossless_, lossy_;
  std::uint64_t size_ = 0;                   // that is shared
  std::uint64_t headroom_each_ = 0;
  std::uint64_t headroom_size_ = 0;          // of all together
  std::uint64_t xon_ = 0, xon_offset_ = 0;
  std::uint64_t shared_ = 0, headroom_ = 0;  // taken
  Counter most_shared_ = 0, most_headroom_ = 0;
};

}  // namespace rnicsim::fabric
