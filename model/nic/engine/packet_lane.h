// Packets of one direction of a QP on their way out, in order; some wait for their payload.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "model/base/pooled_list.h"
#include "model/nic/packets/packet.h"

namespace rnicsim::nic {

class PacketLane {
 public:
  struct Entry {
    std::uint64_t sequence = 0;
    PacketRef packet;
    bool ready = false;                  // to leave, when it is the first
    std::uint64_t message = 0;           // requests
    roce::Psn end;                       // requests: the next one's PSN
    std::uint32_t awaited = 0;           // bytes of payload that are not here yet, when await() counts them
  };

  std::size_t size() const { return entries_.size(); }
  // Of all entries.
  std::uint64_t awaited() const { return awaited_; }

  Entry& add(PacketRef packet) {
    auto& entry = entries_.emplace_back();
    entry.sequence = next_sequence_++;
    entry.packet = std::move(packet);
    return entry;
  }
  void await(Entry& entry, std::uint32_t bytes) { awaited_ += entry.awaited = bytes; }
  void arrived(Entry& entry, Payload&& payload) {
    awaited_ -= std::exchange(entry.awaited, 0);
    entry.packet->put(std::move(payload));
    entry.ready = true;
  }
  const Entry& last() const { return entries_.back(); }
  // nullptr: it was dropped.
  Entry* find(std::uint64_t sequence) {
    const auto found = std::ranges::find(entries_, sequence, &Entry::sequence);
    return found == entries_.end() ? nullptr : &*found;
  }
  // `put(entry)` for each that is ready and has none before it that is not; it may take the packet.
  template <class Put>
  void emit_ready(Put&& put) {
    for (; !entries_.empty() && entries_.front().ready; entries_.pop_front()) put(entries_.front());
  }
  // From `sequence` on; returns how many.
  std::uint32_t drop_from(std::uint64_t sequence) {
    std::uint32_t dropped = 0;
    for (; !entries_.empty() && entries_.back().sequence >= sequence; entries_.pop_back(), ++dropped)
      awaited_ -= entries_.back().awaited;
    return dropped;
  }

 private:
  PooledList<Entry> entries_;
  std::uint64_t next_sequence_ = 0;
  std::uint64_t awaited_ = 0;
};

}  // namespace rnicsim::nic
