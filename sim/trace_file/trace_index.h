// SPDX-License-Identifier: Apache-2.0
// Index at the end of a trace: place, times and number of events of each block, and the blocks of each queue pair. With
// the index a reader reads only the blocks that a filter needs. Manual: traces/README.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/base/units.h"

namespace rnicsim::sim {

// Largest index in bytes, before compression. A trace whose index would be larger has none.
inline constexpr std::size_t kMostIndex = 32 << 20;

struct TraceBlock {
  std::uint64_t offset = 0;  // in the file
  std::uint64_t bytes = 0;   // in the file
  std::uint64_t events = 0;  // without the end mark
  Duration first, last;      // times of the first and the last event, or of the end mark

  bool operator==(const TraceBlock&) const = default;
};

class TraceIndex {
 public:
  // Blocks from `begin` up to, but not including, `end`.
  struct Range {
    std::uint32_t begin, end;
    bool operator==(const Range&) const = default;
  };

  const std::vector<TraceBlock>& blocks() const { return blocks_; }
  std::uint64_t events() const;
  // Ranges of blocks with events of the queue pair, in ascending order. A range may also have blocks without.
  std::span<const Range> blocks_of(std::uint32_t host, std::uint32_t qp) const;
  bool has(std::size_t block, std::uint32_t host, std::uint32_t qp) const;
  // True: each range of `other` is in a range of this index.
  bool covers(const TraceIndex& other) const;

  void encode(std::vector<std::byte>& out) const;
  // `begin`, `end`: place of the blocks in the file. nullopt: the writer left the index out. TraceError: no index, or
  // an index that contradicts itself.
  static std::optional<TraceIndex> decode(std::span<const std::byte> content, std::uint64_t begin, std::uint64_t end,
                                          std::size_t hosts);
  static void encode_absent(std::vector<std::byte>& out);

 private:
  friend class TraceIndexBuilder;
  using Key = std::uint64_t;  // host << 32 | queue pair
  static Key key_of(std::uint32_t host, std::uint32_t qp) { return Key{host} << 32 | qp; }

  void decode_blocks(std::span<const std::byte>& rest, std::uint64_t begin, std::uint64_t end);
  void decode_queue_pairs(std::span<const std::byte>& rest, std::size_t hosts);

  std::vector<TraceBlock> blocks_;
  std::map<Key, std::vector<Range>> queue_pairs_;
};

// Collects the index while events are written or read.
class TraceIndexBuilder {
 public:
  // Limits of the memory. Above kMostRanges, small gaps between ranges are closed.
  static constexpr std::size_t kMostBlocks = 1 << 20, kMostRanges = 1 << 19;

  // The present block has an event of the queue pair.
  void add(std::uint32_t host, std::uint32_t qp) {
    if (is_too_large_) return;
    const auto key = TraceIndex::key_of(host, qp);
    auto& slot = recent_[(qp ^ host << 9) % recent_.size()];
    if (slot.key != key || slot.of == nullptr) {
      auto& of = queue_pairs_[key];
      slot = {key, of.end, &of};
    }
    if (slot.end == block_ + 1) return;
    if (slot.of->end != block_ + 1) extend(*slot.of);
    slot.end = block_ + 1;
  }
  void end_block(const TraceBlock& block);
  // nullopt: the trace is too large for an index.
  std::optional<TraceIndex> finish() &&;

 private:
  struct QueuePair {
    std::uint32_t end = 0;  // of its last range
    std::vector<TraceIndex::Range> ranges;
  };
  struct Recent {
    TraceIndex::Key key = 0;
    std::uint32_t end = 0;    // QueuePair::end, at the last use of this entry or later
    QueuePair* of = nullptr;  // in queue_pairs_, whose elements keep their places
  };

  void extend(QueuePair& of);
  void close_gaps();

  std::vector<TraceBlock> blocks_;
  std::uint32_t block_ = 0;  // number of the present block
  bool is_too_large_ = false;
  std::unordered_map<TraceIndex::Key, QueuePair> queue_pairs_;
  std::array<Recent, 1024> recent_{};
  std::size_t ranges_ = 0;
  std::uint32_t gap_ = 0;  // gaps of at most this number of blocks are closed
};

}  // namespace rnicsim::sim
