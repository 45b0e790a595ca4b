// SPDX-License-Identifier: Apache-2.0
// Request packets of one queue pair that arrived before missing ones (roce::Verdict::Kind::keep), in the order of their
// PSNs. The payload of WRITEs may be placed before the packet's turn.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "model/base/pooled_list.h"
#include "model/nic/packets/packet_streams.h"
#include "model/nic/packets/receive/buffer_hold.h"
#include "model/nic/seam/qp_engine.h"

namespace rnicsim::nic {

class EarlyPackets {
 public:
  enum class Payload : std::uint8_t { here, on_its_way, placed };
  struct Entry {
    PacketIn packet;
    BufferHold waiting{};  // buffer space of payload that is `here`
    Payload payload = Payload::here;
    AccessResult result = AccessResult::ok;  // if `placed`

    roce::Psn psn() const { return packet.headers().bth.psn; }
  };

  // True: the first packet must be checked before any other packet of the queue pair.
  bool due() const { return due_; }
  Entry& first() { return entries_.front(); }
  const Entry& first() const { return entries_.front(); }
  Entry& add(PacketIn&& packet) {
    const auto psn = packet.headers().bth.psn;
    auto behind = entries_.end();
    while (behind != entries_.begin() && before(psn, std::prev(behind)->psn())) --behind;
    entries_.emplace_back(Entry{.packet = std::move(packet)});
    const auto added = std::prev(entries_.end());
    if (behind != entries_.end() && behind != added) entries_.splice(behind, entries_, added);
    return *added;
  }
  // Makes packet `psn` the next one to check, if it is kept. Drops the packets before it.
  void make_due(roce::Psn psn) {
    while (!entries_.empty() && before(entries_.front().psn(), psn)) entries_.pop_front();
    due_ = !entries_.empty() && entries_.front().psn() == psn;
  }
  void pop_due() {
    entries_.pop_front();
    due_ = false;
  }
  void clear() {
    entries_.clear();
    landing_.clear();
    due_ = false;
  }

  // --- Payload on its way to memory, of packets that were executed meanwhile; `argument`: their pending answer.
  void had_turn(roce::Psn psn, std::uint64_t argument) { landing_.push_back({psn, argument}); }
  // The payload of packet `psn` is in memory, or could not be written. Returns the argument of had_turn(); nullopt: the
  // packet is still kept.
  std::optional<std::uint64_t> came(roce::Psn psn, AccessResult result) {
    for (auto at = landing_.begin(); at != landing_.end(); ++at)
      if (at->psn == psn) {
        const auto argument = at->argument;
        landing_.erase(at);
        return argument;
      }
    for (auto& entry : entries_)
      if (entry.psn() == psn && entry.payload == Payload::on_its_way) {
        entry.payload = Payload::placed;
        entry.result = result;
      }
    return std::nullopt;
  }

 private:
  struct Landing {
    roce::Psn psn;
    std::uint64_t argument = 0;
  };

  PooledList<Entry> entries_;
  PooledList<Landing> landing_;
  bool due_ = false;
};

}  // namespace rnicsim::nic
