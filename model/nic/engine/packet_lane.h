// SPDX-License-Identifier: Apache-2.0
// Packets of one direction of a QP that are to be sent, in order; some wait for their payload.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "model/base/pooled_list.h"
#include "model/nic/packets/packet.h"

namespace rnicsim::nic {

// Memory that is still to be read for a READ response.
struct ReadRest {
  std::uint32_t pd = 0;
  std::uint32_t key = 0;
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;
};

class PacketLane {
 public:
  struct Entry {
    std::uint64_t sequence = 0;
    PacketRef packet;
    bool ready = false;             // may leave when it is first
    std::uint64_t message = 0;      // requests
    roce::Psn end;                  // requests: PSN of the next packet
    std::uint32_t bytes = 0;        // payload bytes, present or not
    std::uint8_t credit_class = 0;  // class of the room that the packet uses (packet_streams.h)
    std::uint32_t missing = 0;      // READ responses: payload bytes that are not here yet
    ReadRest rest{};                // the end of these bytes, not requested yet
    std::uint32_t pieces = 0;       // requested pieces that are not here yet
  };

  std::size_t size() const { return entries_.size(); }
  // Bytes of READ responses that are requested and not here, over all entries; and the number of their pieces.
  std::uint64_t awaited() const { return awaited_; }
  std::uint64_t pieces() const { return pieces_; }

  Entry& add(PacketRef packet) {
    auto& entry = entries_.emplace_back();
    entry.sequence = next_sequence_++;
    entry.packet = std::move(packet);
    return entry;
  }
  static void arrived(Entry& entry, Payload&& payload) {
    entry.packet->put(std::move(payload));
    entry.ready = true;
  }
  static void expect(Entry& entry, const ReadRest& read) {
    entry.missing = read.bytes;
    entry.rest = read;
  }
  // The last entry if it has bytes that are not requested; entries before it have none.
  Entry* unasked() { return all_asked() ? nullptr : &entries_.back(); }
  bool all_asked() const { return entries_.empty() || entries_.back().rest.bytes == 0; }
  struct Piece {
    ReadRest read;
    std::uint32_t offset;  // in the packet
  };
  // Takes up to `most` of the bytes that are not requested, as one piece to request.
  Piece ask(Entry& entry, std::uint32_t most) {
    auto& rest = entry.rest;
    const auto bytes = std::min(rest.bytes, most);
    if (bytes < entry.missing && entry.packet->payload().empty()) entry.packet->put(Payload(entry.missing));
    const auto all = entry.packet->payload().size();
    const Piece piece{{rest.pd, rest.key, rest.address, bytes}, all == 0 ? 0 : all - rest.bytes};
    rest.address += bytes;
    rest.bytes -= bytes;
    awaited_ += bytes;
    ++pieces_;
    ++entry.pieces;
    return piece;
  }
  void piece_arrived(Entry& entry, std::uint32_t offset, Payload&& piece) {
    awaited_ -= piece.size();
    --pieces_;
    --entry.pieces;
    entry.missing -= piece.size();
    const bool whole = entry.packet->payload().empty();
    whole ? entry.packet->put(std::move(piece)) : entry.packet->put_piece(offset, piece);
    entry.ready = entry.missing == 0;
  }
  const Entry& last() const { return entries_.back(); }
  // nullptr: the entry was dropped.
  Entry* find(std::uint64_t sequence) {
    const auto found = std::ranges::find(entries_, sequence, &Entry::sequence);
    return found == entries_.end() ? nullptr : &*found;
  }
  // Calls `put(entry)` for each ready entry that no unready one precedes; `put` may take the packet.
  template <class Put>
  void emit_ready(Put&& put) {
    for (; !entries_.empty() && entries_.front().ready; entries_.pop_front()) put(entries_.front());
  }
  // Drops the entries from `sequence` on; calls `dropped(entry)` for each.
  template <class Each>
  void drop_from(std::uint64_t sequence, Each&& dropped) {
    for (; !entries_.empty() && entries_.back().sequence >= sequence; entries_.pop_back()) {
      dropped(std::as_const(entries_.back()));
      awaited_ -= entries_.back().missing - entries_.back().rest.bytes;
      pieces_ -= entries_.back().pieces;
    }
  }

 private:
  PooledList<Entry> entries_;
  std::uint64_t next_sequence_ = 0;
  std::uint64_t awaited_ = 0;
  std::uint64_t pieces_ = 0;
};

}  // namespace rnicsim::nic
