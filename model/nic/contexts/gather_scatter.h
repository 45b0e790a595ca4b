// Payload between packets and memory: translates each region of a request, then reads or writes it there. A request
// that is refused touches no memory. Scatters of one QP reach memory in order, as the packets came: one whose
// translation is not at hand holds those behind it.
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

// A request's translations are at hand, and its DMA begins; or it was refused.
struct AccessTranslated {
  Tag tag;
  Qpn qpn;
};

// The engine took payload, which is now to be placed.
struct PayloadTaken {
  Qpn qpn;
  std::uint32_t bytes;
};

class GatherScatter : DmaClient {
 public:
  // With `timing_only` payload is neither read nor written.
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
  // The queue pair is no more what it was: what it has not begun to write stays unwritten.
  void forget(Qpn qpn);
  void reset();
  // Payload of scatters whose translation, or whose turn, has not come.
  std::uint64_t waiting_bytes() const { return waiting_bytes_; }

 private:
  // A request of several places, or one whose translation has to be filled.
  struct Job;
  using JobPtr = std::shared_ptr<Job>;
  // The scatters of a QP. They are translated as they come, and written in order.
  struct Order {
    std::uint32_t waiting = 0;               // for the cache's second level, and not begun yet
    Duration until{};                        // the last of them
    Fifo<JobPtr> jobs{};               // and all behind the first of these
    std::uint64_t epoch = 0;
    PayloadMemory::Order writes{};
  };
  // The usual request: one place, translated. From its pool until it begins.
  struct Access {
    Tag tag;
    Qpn qpn;
    AccessResult result;
    Dma::Place place;
    std::uint32_t length;
    Order* order;                            // of a scatter; none: a gather
    std::uint64_t epoch;                     // of that
    Payload payload;
    bool more;
    bool relaxed;                            // its region is
    bool frame;                              // of a gather: see Gather
    bool remote;                             // likewise
    JobPtr job;                              // instead of all this: it was translated before its turn
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
  IndexTable<Order> orders_;                 // by QP
  Pool<Access> accesses_;
  std::uint64_t waiting_bytes_ = 0;
  EventQueue<Access*> at_hand_{[this] { begin_due(); }};
};

}  // namespace rnicsim::nic
