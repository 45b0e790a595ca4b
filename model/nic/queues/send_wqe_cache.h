// SPDX-License-Identifier: Apache-2.0
// The send WQE cache: keeps a WQE from its arrival, by BlueFlame or fetch, until its completion, because the WQE is
// needed when it is sent and when it completes. A displaced WQE is read from the ring again.
//
// There is one lookup path for each transmit unit; a QP's number determines its path. A path works in order and has
// miss slots of its own: a miss without a free slot delays later lookups of the path, but not of other paths.
// Completions of a QP stay in order.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "model/base/fifo.h"
#include "model/base/index_table.h"
#include "model/base/params.h"
#include "model/base/policy.h"
#include "model/base/pooled_list.h"
#include "model/base/stream.h"
#include "model/nic/contexts/cache.h"
#include "model/nic/contexts/miss_slots.h"
#include "model/nic/pcie/dma.h"
#include "model/nic/queues/send_wqe_cache_params.h"
#include "model/nic/seam/qp_engine.h"

namespace rnicsim::nic {

class SendWqeCache : DmaClient {
 public:
  SendWqeCache(const SendWqeCacheParams& params, std::uint32_t units, std::uint32_t block_bytes, Dma& dma);

  Output<CqeWrite> cqe;
  Output<Tag> at_hand;

  [[gnu::flatten]] void hold(const WqeHeld& wqe);
  [[gnu::flatten]] void need(const WqeNeeded& wqe);
  [[gnu::flatten]] void retire(WqeRetired&& wqe);
  // Cancels the completions of this QP.
  void forget_qp(Qpn qpn);
  void reset();
  void seed(std::uint64_t seed) { tags_.seed(seed); }  // seed of random replacement

  const SendWqeCacheCounters& counters() const { return counters_; }

 private:
  struct Lookup {
    Qpn qpn;
    std::uint16_t index;
    std::uint16_t blocks;
    Pasid pasid;
    std::uint64_t address;
    std::optional<Tag> to_send;  // nullopt: the lookup is for the completion
    std::uint64_t ticket;
    Duration since{};  // time since which it waits for a slot
  };

  struct Waiting {
    std::optional<CqeWrite> cqe;
    bool here = false;
    std::uint64_t ticket = 0;
  };

  struct Path {
    Path(std::uint32_t count, MissSlotsCounters& counters) : slots(count, counters) {}

    MissSlots slots;
    std::deque<Lookup> stalled;  // wait behind a miss without a slot
  };

  static std::uint64_t key(Qpn qpn, std::uint16_t block);
  Path& path(Qpn qpn) { return paths_[unit_of(qpn, static_cast<std::uint32_t>(paths_.size()))]; }
  PooledList<Waiting>& line(Qpn qpn);
  void in_turn(const Lookup& lookup);
  [[gnu::noinline]] void stall(Path& path, const Lookup& lookup);
  bool can_look_up(const Path& path, const Lookup& lookup) const;
  void look_up(Path& path, const Lookup& lookup);
  void found(const Lookup& lookup);
  void read(const Lookup& lookup);
  [[gnu::flatten]] void dma_done(std::uint32_t resets, std::uint64_t, AccessResult, Payload&&) override;
  void fetched(const Lookup& lookup);
  void complete(Qpn qpn, std::uint64_t ticket);

  const std::uint32_t block_bytes_;
  CacheTags tags_;
  Dma& dma_;
  IndexTable<PooledList<Waiting>> waiting_;  // by QP, from the first completion that is not ready
  SendWqeCacheCounters counters_;
  std::deque<Path> paths_;  // elements never move
  Fifo<Lookup> reading_;    // being read again, in order
  std::uint64_t tickets_ = 0;
  std::uint32_t resets_ = 0;  // replies from before a reset are void
};

}  // namespace rnicsim::nic
