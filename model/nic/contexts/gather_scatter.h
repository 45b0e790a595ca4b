// SPDX-License-Identifier: Apache-2.0
// Payload between packets and memory: translates each region of a request, then reads or writes it. A refused request
// touches no memory. Scatters of one QP reach memory in the order of their packets: a scatter without translation
// delays the scatters after it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "model/base/event_queue.h"
#include "model/base/fifo.h"
#include "model/base/index_table.h"
#include "model/base/pool.h"
#include "model/base/stream.h"
#include "model/base/trace.h"
#include "model/nic/contexts/payload_memory.h"
#include "model/nic/contexts/translation.h"
#include "model/nic/seam/qp_engine.h"

namespace rnicsim::nic {

// The translations of a request are available and its DMA begins, or the request was refused.
struct AccessTranslated {
  Tag tag;
  Qpn qpn;
};

// The engine handed over payload for placement.
struct PayloadTaken {
  Qpn qpn;
  std::uint32_t bytes;
};

class GatherScatter : DmaClient {
 public:
  // `timing_only`: payload is neither read nor written.
  GatherScatter(Translation& translation, PayloadMemory& memory, bool timing_only)
      : translation_(translation), memory_(memory), timing_only_(timing_only) {}

  Output<DmaDone> gathered;
  Output<DmaDone> scattered;
  Output<KeyDone> checked;
  trace::Point<AccessTranslated> translated;
  trace::Point<PayloadTaken> taken;

  [[gnu::flatten]] void gather(Gather&& request);
  [[gnu::flatten]] void scatter(Scatter&& request);
  [[gnu::flatten]] void check(const AccessCheck& request);
  void look(const PresenceCheck& request);
  // The queue pair was destroyed or reset: writes that have not begun are cancelled.
  void forget(Qpn qpn);
  void reset();
  // Bytes of scatters that wait for their translation or their turn.
  std::uint64_t waiting_bytes() const { return waiting_bytes_; }

 private:
  // A request with several places, or one whose translation must be filled.
  struct Job;
  using JobPtr = std::shared_ptr<Job>;
  // The scatters of a QP: translated when they come, written in order.
  struct Order {
    std::uint32_t waiting = 0;  // scatters that wait for the cache's second level
    Duration until{};           // when the last of them begins
    Fifo<JobPtr> jobs{};        // scatters behind the first one that needs a fill, in order
    std::uint64_t epoch = 0;
    PayloadMemory::Order writes{};
  };
  // The usual request: one place, translated. Lives in the pool until it begins.
  struct Access {
    Tag tag;
    Qpn qpn;
    AccessResult result;
    Dma::Place place;
    std::uint32_t length;
    Order* order;         // scatters; nullptr: a gather
    std::uint64_t epoch;  // epoch of the order at the request
    Payload payload;
    bool more;
    bool relaxed;  // the region has relaxed ordering
    bool frame;    // gathers: Gather::frame
    bool remote;   // gathers: Gather::remote
    JobPtr job;    // set: this entry only continues a job that was translated early
  };
  enum Kind : std::uint32_t { kGather, kScatter };

  bool only_place(const Regions& regions, const AccessRequest& access, Translated& found) const;
  Order& order(Qpn qpn);
  Access& take_access(Tag tag, Qpn qpn, const Translated& found, std::uint32_t length);
  [[gnu::noinline]] void gather_in_parts(Gather&& request, const AccessRequest& access);
  [[gnu::noinline]] void scatter_in_parts(Scatter&& request, const AccessRequest& access, Order& order);
  void begin(Access& access);
  [[gnu::noinline]] void refuse(Access& access, AccessResult result);
  [[gnu::flatten]] void begin_due();
  void dma_done(std::uint32_t kind, std::uint64_t tag, AccessResult result, Payload&& data) override;
  [[gnu::noinline]] void write_ready(Qpn qpn);
  [[gnu::noinline]] void translate(const JobPtr& job);
  static bool hold(Job& job);
  void read_when_held(const JobPtr& job);
  [[gnu::noinline]] void read(const JobPtr& job);
  static void pad(Job& job);
  [[gnu::noinline]] void write(const JobPtr& job);
  [[gnu::noinline]] void part_done(const JobPtr& job, AccessResult result);

  Translation& translation_;
  PayloadMemory& memory_;
  const bool timing_only_;
  IndexTable<Order> orders_;  // by QP
  Pool<Access> accesses_;
  std::uint64_t waiting_bytes_ = 0;
  EventQueue<Access*> at_hand_{[this] { begin_due(); }};
};

}  // namespace rnicsim::nic
