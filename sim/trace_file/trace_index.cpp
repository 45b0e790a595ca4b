// SPDX-License-Identifier: Apache-2.0
#include "sim/trace_file/trace_index.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "sim/trace_file/format.h"
#include "sim/trace_file/leb128.h"

namespace rnicsim::sim {
namespace {

constexpr std::string_view kIndexMagic = "rnicsim index\n";
enum : std::uint64_t { kAbsent, kPresent };

void append_magic(std::vector<std::byte>& out) {
  const auto bytes = std::as_bytes(std::span(kIndexMagic));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

[[noreturn]] void refuse_index() { throw TraceError("the index contradicts itself"); }

std::uint64_t take_at_most(std::span<const std::byte>& rest, std::uint64_t most) {
  const auto value = next_number(rest);
  if (value > most) refuse_index();
  return value;
}

Duration take_later(std::span<const std::byte>& rest, Duration from) {
  const auto most = std::uint64_t(std::numeric_limits<std::int64_t>::max() - from.ps);
  return {from.ps + std::int64_t(take_at_most(rest, most))};
}

}  // namespace

std::uint64_t TraceIndex::events() const {
  std::uint64_t events = 0;
  for (const auto& block : blocks_) events += block.events;
  return events;
}

std::span<const TraceIndex::Range> TraceIndex::blocks_of(std::uint32_t host, std::uint32_t qp) const {
  const auto found = queue_pairs_.find(key_of(host, qp));
  return found == queue_pairs_.end() ? std::span<const Range>() : found->second;
}

bool TraceIndex::has(std::size_t block, std::uint32_t host, std::uint32_t qp) const {
  const auto ranges = blocks_of(host, qp);
  const auto next = std::ranges::upper_bound(ranges, block, {}, &Range::begin);
  return next != ranges.begin() && block < std::prev(next)->end;
}

bool TraceIndex::covers(const TraceIndex& other) const {
  for (const auto& [key, ranges] : other.queue_pairs_)
    for (const auto& range : ranges) {
      const auto mine = blocks_of(std::uint32_t(key >> 32), std::uint32_t(key));
      const auto next = std::ranges::upper_bound(mine, range.begin, {}, &Range::begin);
      if (next == mine.begin() || range.end > std::prev(next)->end) return false;
    }
  return true;
}

void TraceIndex::encode(std::vector<std::byte>& out) const {
  append_magic(out);
  append_number(out, kPresent);
  append_number(out, blocks_.size());
  Duration last;
  for (const auto& block : blocks_) {
    append_number(out, block.bytes);
    append_number(out, block.events);
    append_number(out, std::uint64_t((block.first - last).ps));
    append_number(out, std::uint64_t((block.last - block.first).ps));
    last = block.last;
  }
  append_number(out, queue_pairs_.size());
  for (const auto& [key, ranges] : queue_pairs_) {
    append_number(out, key >> 32);
    append_number(out, std::uint32_t(key));
    append_number(out, ranges.size());
    std::uint32_t end = 0;
    for (const auto& range : ranges) {
      append_number(out, range.begin - end);
      append_number(out, range.end - range.begin);
      end = range.end;
    }
  }
}

void TraceIndex::encode_absent(std::vector<std::byte>& out) {
  append_magic(out);
  append_number(out, kAbsent);
}

std::optional<TraceIndex> TraceIndex::decode(std::span<const std::byte> content, std::uint64_t begin, std::uint64_t end,
                                             std::size_t hosts) {
  const auto magic = std::as_bytes(std::span(kIndexMagic));
  if (content.size() < magic.size() || !std::ranges::equal(content.first(magic.size()), magic))
    throw TraceError("no index follows the end mark");
  auto rest = content.subspan(magic.size());
  std::optional<TraceIndex> index;
  if (take_at_most(rest, kPresent) == kPresent) {
    index.emplace();
    index->decode_blocks(rest, begin, end);
    index->decode_queue_pairs(rest, hosts);
  }
  if (!rest.empty()) refuse_index();
  return index;
}

void TraceIndex::decode_blocks(std::span<const std::byte>& rest, std::uint64_t begin, std::uint64_t end) {
  constexpr std::uint64_t kMostEvents = std::uint64_t{1} << 40;
  const auto count = take_at_most(rest, rest.size());
  Duration last;
  for (std::uint64_t i = 0; i < count; ++i) {
    TraceBlock block{.offset = begin};
    block.bytes = take_at_most(rest, end - begin);
    begin += block.bytes;
    block.events = take_at_most(rest, kMostEvents);
    block.first = take_later(rest, last);
    last = block.last = take_later(rest, block.first);
    blocks_.push_back(block);
  }
  if (begin != end) refuse_index();
}

void TraceIndex::decode_queue_pairs(std::span<const std::byte>& rest, std::size_t hosts) {
  constexpr auto kMost = std::numeric_limits<std::uint32_t>::max();
  for (auto count = take_at_most(rest, rest.size()); count > 0; --count) {
    const auto host = take_at_most(rest, hosts == 0 ? 0 : hosts - 1);
    const auto key = key_of(std::uint32_t(host), std::uint32_t(take_at_most(rest, kMost)));
    if (!queue_pairs_.empty() && queue_pairs_.rbegin()->first >= key) refuse_index();
    auto& ranges = queue_pairs_[key];
    std::uint64_t end = 0;
    for (auto left = take_at_most(rest, rest.size()); left > 0; --left) {
      const auto begin = end + take_at_most(rest, blocks_.size() - end);
      end = begin + take_at_most(rest, blocks_.size() - begin);
      if (begin == end) refuse_index();
      ranges.push_back({std::uint32_t(begin), std::uint32_t(end)});
    }
  }
}

void TraceIndexBuilder::extend(QueuePair& of) {
  if (of.ranges.empty() || block_ - of.end > gap_) {
    of.ranges.push_back({block_, block_});
    ++ranges_;
  }
  of.end = of.ranges.back().end = block_ + 1;
  if (ranges_ > kMostRanges) close_gaps();
}

void TraceIndexBuilder::close_gaps() {
  while (ranges_ > kMostRanges / 2 && gap_ < block_) {
    gap_ = gap_ == 0 ? 1 : 2 * gap_;
    ranges_ = 0;
    for (auto& [key, of] : queue_pairs_) {
      auto& ranges = of.ranges;
      std::size_t kept = 0;
      for (std::size_t i = 1; i < ranges.size(); ++i)
        if (ranges[i].begin - ranges[kept].end <= gap_)
          ranges[kept].end = ranges[i].end;
        else
          ranges[++kept] = ranges[i];
      ranges.resize(kept + 1);
      ranges_ += ranges.size();
    }
  }
  is_too_large_ = ranges_ > kMostRanges;
}

void TraceIndexBuilder::end_block(const TraceBlock& block) {
  is_too_large_ |= blocks_.size() >= kMostBlocks;
  if (!is_too_large_) blocks_.push_back(block);
  ++block_;
}

std::optional<TraceIndex> TraceIndexBuilder::finish() && {
  if (is_too_large_) return {};
  TraceIndex index;
  index.blocks_ = std::move(blocks_);
  for (auto& [key, of] : queue_pairs_) index.queue_pairs_.emplace(key, std::move(of.ranges));
  return index;
}

}  // namespace rnicsim::sim
