// The DMA unit: every access of the device to host memory, with PCIe's time. Arbitration is by burst: a burst's TLPs
// are counted in closed form (pcie_link.h) and follow one another on the link.
//
// To the host go writes and read requests, in order; to the device go completions and the CPU's posted writes. A read
// takes tags and room for its bytes, a write takes posted credits: who finds none waits its turn. Reads sample memory
// when they complete, and not before the writes ahead of them have landed; writes land when they arrive. Reads are done
// in the order they were asked for, but for payload of a line that the host is busy with: others pass that.
//
// With the attribute of relaxed ordering (PCIe Base Specification 2.4.1) a write passes writes that wait, for credits
// or in the host, and a read is sampled without regard to the writes ahead of it. Nothing without it passes a write,
// with it or not.
//
// Accesses to adjoining addresses that are under way together are made in one call to the host (up to `burst`): a call
// into an attached process is dear. A read is then sampled up to a burst early, but never before it was issued.
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

// An access on its way over the link, when it is issued.
struct DmaIssued {
  bool write;
  Pasid pasid;
  std::uint64_t address;
  std::uint32_t bytes;
  Duration done;                // in so long it is sampled, or has landed
};

// Who asks for accesses, and is told when one is done: `kind` and `tag` are its own, `data` is what was read.
class DmaClient {
 public:
  virtual void dma_done(std::uint32_t kind, std::uint64_t tag, AccessResult result, Payload&& data) = 0;

 protected:
  ~DmaClient() = default;
};

// Whom to tell, and what; without a client nobody is told.
struct DmaReply {
  DmaClient* client = nullptr;
  std::uint32_t kind = 0;
  std::uint64_t tag = 0;
};

class Dma : public sc_core::sc_module {
 public:
  using Done = InlineFunction<void(AccessResult, Payload)>;
  struct Placement {
    bool more = false;          // may land together with the next write, at that one's time
    bool right_behind = false;  // follows a write that has just landed: no latency of its own
    bool discard = false;       // payload that nobody looks at (timing only): memory is not touched
    bool relaxed = false;       // with the attribute of relaxed ordering: passes writes that wait
  };
  struct Sampling {
    bool discard = false;       // as of a write
    bool ordered = false;       // without the attribute of relaxed ordering: passes no write
    bool relaxed = false;       // with it, as its memory region says; not with `ordered`
    bool payload = false;       // may wait for its line alone, and be done behind later ones
    bool for_peer = false;      // for the responder's answer, which waits for the completion timeout if need be
  };
  // Where an access lies. TLPs end at multiples of `offset`, which is counted from the start of the memory region: a
  // program's own addresses are not the same at every run, and no result may depend on them.
  struct Place {
    Pasid pasid;
    std::uint64_t address;
    std::uint64_t offset;
  };

  Dma(sc_core::sc_module_name name, const DmaParams& params);

  // The endpoint's side.
  void reach(HostMemory& memory) { host_ = &memory; }
  trace::Point<DmaIssued> issued;

  [[gnu::flatten]] void read(const Place& place, std::uint32_t bytes, const DmaReply& reply, Sampling sampling);
  [[gnu::flatten]] void write(const Place& place, Payload&& data, const DmaReply& reply, Placement placement);
  // Queues, contexts and records, whose addresses are aligned.
  void read(Pasid pasid, std::uint64_t address, std::uint32_t bytes, const DmaReply& reply) {
    read({pasid, address, address % kPage}, bytes, reply, {});
  }
  void write(Pasid pasid, std::uint64_t address, Payload&& data, const DmaReply& reply, Placement placement) {
    write({pasid, address, address % kPage}, std::move(data), reply, placement);
  }
  void write(Pasid pasid, std::uint64_t address, Payload&& data, const DmaReply& reply = {}) {
    write(pasid, address, std::move(data), reply, {});
  }
  // The writes so far have landed; and by when they will have, kNever when some of them wait for credits.
  void after_writes(const DmaReply& reply);
  Duration landing() const { return waiting_writes_.empty() ? last_landing_ : Agenda::kNever; }
  // Nothing lands before this time, if the device does nothing before `next`.
  Duration quiet_until(Duration next) const;
  // Bytes on their way to the host that the link has not taken yet.
  std::uint64_t backlog() const {
    const auto wait = to_host_.free() - now();
    return waiting_bytes_ + (wait > Duration{} ? static_cast<std::uint64_t>(wait.ps) * bytes_a_ps_ >> kScale : 0);
  }
  // For who asks seldom: the reply is a call.
  DmaReply closure(Done&& done) { return closures_.keep(std::move(done)); }
  // A posted write of the CPU passes.
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
  // From its pool until it is done; queues pass it on by reference.
  struct Access {
    Place place{};
    DmaReply reply;
    Payload data;               // of a read that is not sampled: its length
    TlpCount tlps;              // of a write, or of a read's requests, each of which has a tag
    AccessResult result = AccessResult::ok;
    bool discard = false;
    // A read.
    bool sampled = false;
    bool ordered = false;
    bool relaxed = false;
    bool payload = false;
    bool for_peer = false;
    bool fence = false;         // a write of nothing, which no TLP carries
    Duration asked;
    Duration after;             // the writes ahead of it have arrived by then
    std::uint64_t behind = 0;   // so many of those that land in order
    std::uint64_t writes_before = 0;  // if it waits: writes ever queued
    // A write.
    Placement placement;
    Credits credits;            // that it takes
    std::uint64_t number = 0;   // of those that land in order
    Access* together = nullptr;  // the one behind it, which lands with it
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
    // Busy for `service`, from when it is free and not before `ready`: until when. The time until then is added up.
    Duration occupy(Duration ready, Duration service, Counter& waited) {
      const auto begins = std::max(ready, free_);
      waited += static_cast<Counter>((begins - ready).ps);
      return free_ = begins + service;
    }
    // Busy for so long, at no certain time: what passes between other things.
    void steal(Duration at, Duration service) { free_ = std::max(at, free_) + service; }
    Duration free() const { return free_; }
    void reset() { free_ = now(); }

   private:
    Duration free_;
  };
  // The share of time that the link was busy of late.
  class Load {
   public:
    void add(Duration at, Duration service);
    double at(Duration at) const;
    void reset();

   private:
    Duration last_;
    double load_ = 0;
  };

  // The lines that the host was asked for of late. It reads one line one time after the other.
  class LineReads {
   public:
    // How long one that is asked for at `at` waits; the host reads it for `each`.
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

  // Those that are inline are dma.cpp's alone.
  inline Access& take_access(const Place& place, const DmaReply& reply);
  void give_back(Access& access);
  inline void finish(Access& access);                // gives it back, and tells who asked
  // It is counted already.
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
  inline Duration count_to_host(Duration at, const TlpCount& tlps);  // and how long the link is busy with them
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
  const std::uint64_t bytes_a_ps_;             // to the host, times 2^kScale
  HostMemory* host_ = nullptr;
  Direction to_host_;
  Direction to_device_;
  Load load_;                                  // of to_host_
  Pool<Access> accesses_;
  Closures closures_;
  Fifo<Access*> waiting_reads_;                // for tags or bytes, or behind a write that waits
  Fifo<Access*> waiting_writes_;               // for posted credits
  std::uint64_t waiting_bytes_ = 0;            // of them
  std::uint64_t writes_queued_ = 0;            // ever
  std::uint64_t writes_unqueued_ = 0;
  std::uint32_t overtaken_ = 0;                // writes that passed the first of them
  Fifo<Posted> posted_;                        // credits that the host will give back, and when
  Fifo<Posted> posted_relaxed_;                // those of writes that land ahead of the last of them
  Credits posted_sum_;
  Alarm credits_back_{[this] { issue_waiting(); }};
  DelayLine<Access*> reads_{[this] { complete_reads(); }};
  EventQueue<Access*> late_reads_{[this] { complete_late_reads(); }};  // that waited for their line
  DelayLine<Access*> unanswered_{[this] { give_up_reads(); }};
  DelayLine<Access*> bursts_{[this] { land_bursts(); }};  // the first of the writes that land together
  Access* last_write_ = nullptr;               // of the last of them
  std::uint64_t burst_bytes_ = 0;              // of that
  std::uint64_t writes_pushed_ = 0;            // into bursts_, ever
  std::uint64_t writes_landed_ = 0;            // of those
  DelayLine<Access*> lone_writes_{[this] { land_each(lone_writes_); }};
  DelayLine<Access*> relaxed_writes_{[this] { land_each(relaxed_writes_); }};  // ahead of the last of bursts_
  std::vector<std::byte> scratch_;
  Payload zeros_;
  std::uint64_t tags_in_use_ = 0;
  std::uint64_t bytes_in_flight_ = 0;
  LineReads line_reads_;
  Duration lone_free_;
  Duration last_landing_;                      // of all writes issued
  Duration last_burst_;                        // of those in bursts_
  Duration last_ordered_;                      // of those that are strictly ordered
  Place ordered_end_{};                        // where the last of these ends
  DmaCounters counters_;
};

}  // namespace rnicsim::nic
