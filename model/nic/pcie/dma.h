// SPDX-License-Identifier: Apache-2.0
// The DMA unit: every access of the device to host memory, with PCIe's timing. Arbitration is by burst: the TLPs of a
// burst are counted in closed form (pcie_link.h) and follow one another on the link.
//
// Writes and read requests go to the host, in order; completions and the CPU's posted writes go to the device. A read
// takes tags and space for its bytes, a write takes posted credits; accesses that find none wait in order. A read
// samples memory when it completes, and not before earlier writes have landed; a write lands when it arrives. Reads
// complete in the order of their requests, except payload reads of a line that the host is still reading: other reads
// pass these.
//
// With the attribute of relaxed ordering (PCIe Base Specification 2.4.1) a write passes writes that wait for credits or
// in the host, and a read is sampled without regard to earlier writes. Accesses without the attribute pass no write.
//
// Concurrent accesses to adjacent addresses are made in one call to the host (up to `burst`), because a call into an
// attached process is expensive. A read is then sampled up to a burst early, but never before it was issued.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/base/delay_line.h"
#include "model/base/event_queue.h"
#include "model/base/fifo.h"
#include "model/base/inline_function.h"
#include "model/base/params.h"
#include "model/base/payload.h"
#include "model/base/pcie.h"
#include "model/base/pool.h"
#include "model/base/stats.h"
#include "model/base/trace.h"
#include "model/nic/pcie/dma_params.h"
#include "model/nic/pcie/pcie_link.h"
#include "model/nic/seam/qp_engine.h"

namespace rnicsim::nic {

// An access at the time when it is issued to the link.
struct DmaIssued {
  bool write;
  Pasid pasid;
  std::uint64_t address;
  std::uint32_t bytes;
  Duration done;         // time until it is sampled or has landed
  std::uint64_t offset;  // of the address in its region: TLPs end at multiples of it
  const void* access;    // identity of a read until its completion
};

// The data of a read has arrived, or its refusal.
struct DmaCompleted {
  const void* access;
  AccessResult result;
  bool answered;  // false: the host sends no completion
};

// A client of the DMA unit, called when an access is done. `kind` and `tag` are the client's own; `data`: the bytes
// read.
class DmaClient {
 public:
  virtual void dma_done(std::uint32_t kind, std::uint64_t tag, AccessResult result, Payload&& data) = 0;

 protected:
  ~DmaClient() = default;
};

// The client to call, with its arguments; nullptr: no call.
struct DmaReply {
  DmaClient* client = nullptr;
  std::uint32_t kind = 0;
  std::uint64_t tag = 0;
};

class Dma : public sc_core::sc_module {
 public:
  using Done = InlineFunction<void(AccessResult, Payload)>;
  struct Placement {
    bool more = false;          // may land together with the next write, at the later time
    bool right_behind = false;  // follows a write that has just landed: no latency of its own
    bool discard = false;       // payload is not stored (timing only): memory is not accessed
    bool relaxed = false;       // relaxed ordering: passes waiting writes
  };
  struct Sampling {
    bool discard = false;   // as Placement::discard
    bool ordered = false;   // no relaxed ordering: passes no write
    bool relaxed = false;   // relaxed ordering of the memory region; not with `ordered`
    bool payload = false;   // may wait for its line alone, and complete after later reads
    bool for_peer = false;  // for the responder's answer: after an abort without completion, waits for the
                            // completion timeout
  };
  // Location of an access. TLPs end at multiples of `offset`, which counts from the start of the memory region:
  // addresses of a program differ between runs, and no result may depend on them.
  struct Place {
    Pasid pasid;
    std::uint64_t address;
    std::uint64_t offset;
  };

  Dma(sc_core::sc_module_name name, const DmaParams& params);

  // Connects the endpoint.
  void reach(HostMemory& memory) { host_ = &memory; }
  trace::Point<DmaIssued> issued;
  trace::Point<DmaCompleted> completed;

  [[gnu::flatten]] void read(const Place& place, std::uint32_t bytes, const DmaReply& reply, Sampling sampling);
  [[gnu::flatten]] void write(const Place& place, Payload&& data, const DmaReply& reply, Placement placement);
  // Queues, contexts and records, which have aligned addresses.
  void read(Pasid pasid, std::uint64_t address, std::uint32_t bytes, const DmaReply& reply) {
    read({pasid, address, address % kPage}, bytes, reply, {});
  }
  void write(Pasid pasid, std::uint64_t address, Payload&& data, const DmaReply& reply, Placement placement) {
    write({pasid, address, address % kPage}, std::move(data), reply, placement);
  }
  void write(Pasid pasid, std::uint64_t address, Payload&& data, const DmaReply& reply = {}) {
    write(pasid, address, std::move(data), reply, {});
  }
  // after_writes(): replies when the writes so far have landed. landing(): the time at which they will have landed;
  // kNever while a write waits for credits.
  void after_writes(const DmaReply& reply);
  Duration landing() const { return waiting_writes_.empty() ? last_landing_ : Agenda::kNever; }
  // Time before which no write lands, if the device does nothing before `next`.
  Duration quiet_until(Duration next) const;
  // Bytes on their way to the host that the link has not taken yet.
  std::uint64_t backlog() const {
    const auto wait = to_host_.free() - now();
    return waiting_bytes_ + (wait > Duration{} ? static_cast<std::uint64_t>(wait.ps) * bytes_a_ps_ >> kScale : 0);
  }
  // For infrequent requests: wraps a closure as a reply.
  DmaReply closure(Done&& done) { return closures_.keep(std::move(done)); }
  // Accounts for a posted write of the CPU on the link.
  void carry_mmio(std::uint64_t bytes);
  void reset();

  const DmaCounters& counters() const { return counters_; }

 private:
  static constexpr std::uint64_t kPage = 4096;
  struct Credits {
    std::uint32_t headers = 0;
    std::uint32_t data = 0;
  };
  struct Posted {
    Duration until;
    Credits credits;
  };
  // An access, from the pool until it is done; queues hold pointers.
  struct Access {
    Place place{};
    DmaReply reply;
    Payload data;   // a read before sampling: only its length
    TlpCount tlps;  // TLPs of a write, or of a read's requests, each of which has a tag
    AccessResult result = AccessResult::ok;
    bool discard = false;
    // Reads:
    bool sampled = false;
    bool ordered = false;
    bool relaxed = false;
    bool payload = false;
    bool for_peer = false;
    bool fence = false;  // a write of no bytes and no TLP (after_writes())
    Duration asked;
    Duration after;                   // earlier writes have landed at this time
    std::uint64_t behind = 0;         // number of ordered writes before this read
    std::uint64_t writes_before = 0;  // if it waits: number of writes queued before it
    // Writes:
    Placement placement;
    Credits credits;             // credits that the write takes
    std::uint64_t number = 0;    // number among the ordered writes
    Access* together = nullptr;  // the next write that lands together with this one
  };
  class Closures final : public DmaClient {
   public:
    DmaReply keep(Done&& done);
    void clear() { kept_.clear(); }
    void dma_done(std::uint32_t kind, std::uint64_t tag, AccessResult result, Payload&& data) override;

   private:
    Pool<Done> kept_;
  };
  // One direction of the link.
  class Direction {
   public:
    // Occupies the link for `service`, from `ready` or when it is free; returns the end. Adds the waiting time to
    // `waited`.
    Duration occupy(Duration ready, Duration service, Counter& waited) {
      const auto begins = std::max(ready, free_);
      waited += static_cast<Counter>((begins - ready).ps);
      return free_ = begins + service;
    }
    // Takes link time without a place in the order, for traffic between other accesses.
    void steal(Duration at, Duration service) { free_ = std::max(at, free_) + service; }
    Duration free() const { return free_; }
    void reset() { free_ = now(); }

   private:
    Duration free_;
  };
  // Recent utilisation of the link.
  class Load {
   public:
    void add(Duration at, Duration service);
    double at(Duration at) const;
    void reset();

   private:
    Duration last_;
    double load_ = 0;
  };

  // Lines that were read recently. The host reads the same line once at a time.
  class LineReads {
   public:
    // Time that a read of the line waits, if requested at `at`; the host reads a line for `each`.
    Duration wait(Pasid pasid, std::uint64_t line, Duration at, Duration each);
    void reset() { lines_.clear(); }

   private:
    struct Line {
      Pasid pasid;
      std::uint64_t line;
      Duration free;
    };
    std::vector<Line> lines_;
  };

  // The inline functions are used in dma.cpp only.
  inline Access& take_access(const Place& place, const DmaReply& reply);
  void give_back(Access& access);
  inline void finish(Access& access);  // returns the access to the pool, and calls the client
  // Issues a read that is already counted.
  inline void ask(const Place& place, std::uint32_t bytes, const DmaReply& reply, Sampling sampling);
  [[gnu::noinline]] void read_in_parts(const Place& place, std::uint32_t bytes, const DmaReply& reply,
                                       Sampling sampling);
  static std::uint32_t largest_read(const DmaParams& params);
  Payload nothing(std::uint32_t bytes);
  bool passes_writes(const Access& read) const;
  bool fits(const Access& read) const;
  inline Credits credits_of(std::uint64_t tlps, std::uint64_t bytes) const;
  inline bool take_credits(const Access& write);
  [[gnu::noinline]] void issue_waiting();
  void issue_read(Access& access);
  void issue_write(Access& access);
  inline Duration in_order(const Access& write, Duration lands);
  inline bool may_overtake(const Access& write) const;
  inline void return_credits(Fifo<Posted>& posted);
  Duration next_credits() const;
  inline void push_landing(Access& access, Duration lands);
  inline Duration queueing(Duration at) const;
  inline Duration line_wait(const Access& read, Duration at);
  inline Duration count_to_host(Duration at, const TlpCount& tlps);  // returns the time that the TLPs occupy the link
  inline Duration count_to_device(const TlpCount& tlps);
  [[gnu::flatten]] void complete_reads();
  void complete_late_reads();
  void complete(Access& read);
  void give_up_reads();
  inline void make_room(const Access& read);
  inline void sample_burst(Access& first);
  void sample(Access& access);
  [[gnu::noinline]] void sample_together(Access& first, std::size_t others, std::uint64_t bytes);
  inline bool joins_burst(const Access& access);
  [[gnu::flatten]] void land_bursts();
  inline void land_ahead_of(const Access& read);
  [[gnu::noinline]] bool land_together(const Access& first);
  void land_each(DelayLine<Access*>& writes);
  inline bool adjoins(const Access& a, const Access& b, std::uint64_t burst_bytes) const;
  void land(Access& access);

  const DmaParams params_;
  const PcieLink link_;
  const std::uint32_t largest_read_;
  static constexpr unsigned kScale = 20;
  const std::uint64_t bytes_a_ps_;  // bytes per ps to the host, times 2^kScale
  HostMemory* host_ = nullptr;
  Direction to_host_;
  Direction to_device_;
  Load load_;  // utilisation of to_host_
  Pool<Access> accesses_;
  Closures closures_;
  Fifo<Access*> waiting_reads_;      // wait for tags or bytes, or behind a waiting write
  Fifo<Access*> waiting_writes_;     // wait for posted credits
  std::uint64_t waiting_bytes_ = 0;  // bytes in waiting_writes_
  std::uint64_t writes_queued_ = 0;  // total so far
  std::uint64_t writes_unqueued_ = 0;
  std::uint32_t overtaken_ = 0;  // writes that passed the head of waiting_writes_
  Fifo<Posted> posted_;          // credits that the host will return, with times
  Fifo<Posted> posted_relaxed_;  // the same for writes that land before the last of posted_
  Credits posted_sum_;
  Alarm credits_back_{[this] { issue_waiting(); }};
  DelayLine<Access*> reads_{[this] { complete_reads(); }};
  EventQueue<Access*> late_reads_{[this] { complete_late_reads(); }};  // reads that waited for their line
  DelayLine<Access*> unanswered_{[this] { give_up_reads(); }};
  DelayLine<Access*> bursts_{[this] { land_bursts(); }};  // each the first of a list of writes that land together
  Access* last_write_ = nullptr;                          // last write of the last list
  std::uint64_t burst_bytes_ = 0;                         // bytes of that list
  std::uint64_t writes_pushed_ = 0;                       // ordered writes so far
  std::uint64_t writes_landed_ = 0;                       // ordered writes that have landed
  DelayLine<Access*> lone_writes_{[this] { land_each(lone_writes_); }};
  DelayLine<Access*> relaxed_writes_{[this] { land_each(relaxed_writes_); }};  // land before the last of bursts_
  std::vector<std::byte> scratch_;
  Payload zeros_;
  std::uint64_t tags_in_use_ = 0;
  std::uint64_t bytes_in_flight_ = 0;
  LineReads line_reads_;
  Duration lone_free_;
  Duration last_landing_;  // latest landing of all issued writes
  Duration last_burst_;    // landing of the last write in bursts_
  Duration last_ordered_;  // landing of the last strictly ordered write
  Place ordered_end_{};    // end address of that write
  DmaCounters counters_;
};

}  // namespace rnicsim::nic
