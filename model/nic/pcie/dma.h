// The DMA unit: every access of the device to host memory, with PCIe's time. Arbitration is by burst: a burst's TLPs
// are counted in closed form (pcie_link.h) and follow one another on the link.
//
// To the host go writes and read requests, in order; to the device go completions and the CPU's posted writes. A read
// takes tags and room for its bytes, a write takes posted credits: who finds none waits its turn. Reads sample memory
// when they complete, and not before the writes ahead of them have landed; writes land when they arrive.
//
// Accesses to adjoining addresses that are under way together are made in one call to the host (up to `burst`): a call
// into an attached process is dear. A read is then sampled up to a burst early, but never before it was issued.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "model/base/delay_line.h"
#include "model/base/fifo.h"
#include "model/base/inline_function.h"
#include "model/base/params.h"
#include "model/base/payload.h"
#include "model/base/pcie.h"
#include "model/base/stats.h"
#include "model/base/trace.h"
#include "model/nic/pcie/pcie_link.h"
#include "model/nic/seam/qp_engine.h"

namespace rnicsim::nic {

using namespace rnicsim::literals;

struct DmaParams {
  PcieLinkParams link;
  Duration read_latency = 400_ns;
  Duration read_internal = 60_ns;
  Duration write_latency = 150_ns;
  Duration read_queueing = 70_ns;
  std::uint32_t read_tags = 128;
  ByteCount read_bytes = 32_KiB;
  std::uint32_t posted_headers = 128;
  ByteCount posted_data = 16_KiB;
  bool relaxed_ordering = false;
  ByteCount burst = 64_KiB;

  void describe(ParamVisitor& visit);
};

struct DmaCounters {
  Counter reads = 0;
  Counter read_bytes = 0;
  Counter writes = 0;
  Counter write_bytes = 0;
  Counter errors = 0;
  Counter to_host_tlps = 0;
  Counter to_host_bytes = 0;
  Counter to_host_busy_ps = 0;
  Counter to_host_wait_ps = 0;
  Counter to_device_tlps = 0;
  Counter to_device_bytes = 0;
  Counter to_device_busy_ps = 0;
  Counter to_device_wait_ps = 0;
  Counter read_stalls = 0;
  Counter write_stalls = 0;
  Counter read_time_ps = 0;

  void describe(CounterVisitor& visit) const;
};

// An access on its way over the link, when it is issued.
struct DmaIssued {
  bool write;
  Pasid pasid;
  std::uint64_t address;
  std::uint32_t bytes;
  Duration done;                // in so long it is sampled, or has landed
};

class Dma : public sc_core::sc_module {
 public:
  using Done = InlineFunction<void(AccessResult, Payload)>;  // what was read; nothing after a write
  struct Placement {
    bool more = false;          // may land together with the next write, at that one's time
    bool right_behind = false;  // follows a write that has just landed: no latency of its own
    bool discard = false;       // payload that nobody looks at (timing only): memory is not touched
  };
  struct Sampling {
    bool discard = false;       // as of a write
    bool ordered = false;       // without the attribute of relaxed ordering: passes no write
  };
  // Where an access lies. TLPs end at multiples of `offset`, which is counted from the start of the memory region: a
  // program's own addresses are not the same at every run, and no result may depend on them.
  struct Place {
    Pasid pasid;
    std::uint64_t address;
    std::uint64_t offset;
  };

  Dma(sc_core::sc_module_name name, const DmaParams& params);

  // Bound to the endpoint.
  std::function<bool(tlm::tlm_command, Pasid, std::uint64_t, std::span<std::byte>)> transfer;
  std::function<std::optional<std::uint64_t>(Pasid, std::uint64_t)> translate;  // by ATS; nullopt: the host won't
  trace::Point<DmaIssued> issued;

  void read(const Place& place, std::uint32_t bytes, Done&& done, Sampling sampling);
  void read(const Place& place, std::uint32_t bytes, Done&& done) { read(place, bytes, std::move(done), Sampling{}); }
  void write(const Place& place, Payload&& data, Done&& done, Placement placement);
  // Queues, contexts and records, whose addresses are aligned.
  void read(Pasid pasid, std::uint64_t address, std::uint32_t bytes, Done&& done) {
    read(Place{pasid, address, address % kPage}, bytes, std::move(done));
  }
  void write(Pasid pasid, std::uint64_t address, Payload&& data, Done&& done) {
    write(pasid, address, std::move(data), std::move(done), Placement{});
  }
  void write(Pasid pasid, std::uint64_t address, Payload&& data, Done&& done, Placement placement) {
    write(Place{pasid, address, address % kPage}, std::move(data), std::move(done), placement);
  }
  // A posted write of the CPU passes.
  void carry_mmio(std::uint64_t bytes);
  void reset();

  const DmaCounters& counters() const { return counters_; }

 private:
  static constexpr std::uint64_t kPage = 4096;
  // From its pool until it is done; queues pass it on by reference.
  struct Access {
    Pasid pasid = 0;
    std::uint64_t address = 0;
    std::uint64_t offset = 0;
    Payload data;
    Done done;
    AccessResult result = AccessResult::ok;
    bool sampled = false;
    bool discard = false;
    bool ordered = false;
    std::uint32_t tags = 0;
    TlpCount tlps;              // of a write, or of a read's requests
    Duration asked;
    Duration after;             // the writes ahead of it have arrived by then
    std::uint64_t behind = 0;   // so many writes of writes_
    Placement placement;        // of a write
    std::uint64_t writes_before = 0;  // of a read that waits: writes ever queued
  };
  // One direction of the link.
  class Direction {
   public:
    // Busy for `service`, from when it is free and not before `ready`: until when.
    Duration occupy(Duration ready, Duration service) { return free_ = std::max(ready, free_) + service; }
    Duration wait(Duration ready) const { return std::max(free_ - ready, Duration{}); }
    // Busy for so long, at no certain time: what passes between other things.
    void steal(Duration service) { occupy(now(), service); }
    void reset() { free_ = now(); }

   private:
    Duration free_;
  };
  // The share of time that the link was busy of late.
  class Load {
   public:
    void add(Duration service);
    double now_is() const;
    void reset();

   private:
    Duration last_;
    double load_ = 0;
  };
  struct Credits {
    std::uint64_t headers = 0;
    std::uint64_t data = 0;
  };
  struct Posted {
    Duration until;
    Credits credits;
  };

  Access& take_access(const Place& place, Done&& done);
  void give_back(Access& access);
  void finish(Access& access);                       // tells who asked, then gives it back
  void ask(const Place& place, std::uint32_t bytes, Done&& done, Sampling sampling);  // what is counted already
  void read_in_parts(const Place& place, std::uint32_t bytes, std::uint32_t part, Done&& done, Sampling sampling);
  std::uint32_t largest_read() const;
  Payload nothing(std::uint32_t bytes);
  bool passes_writes(const Access& read) const;
  bool fits(const Access& read) const;
  Credits credits_of(const Access& write) const;
  bool take_credits(const Access& write);
  void issue_waiting();
  void issue_read(Access& access);
  void issue_write(Access& access);
  void push_landing(Access& access, Duration lands);
  Duration queueing() const;
  Duration occupy_to_host(Duration service);
  Duration count_to_host(const TlpCount& tlps);      // and how long the link is busy with them
  Duration count_to_device(const TlpCount& tlps);
  void complete_reads();
  void sample_burst(Access& first);
  void sample(Access& access);
  bool joins_burst(const Access& access);
  void land_bursts();
  void land_ahead_of(const Access& read);
  bool land_together(std::uint32_t count);
  void land_lone_writes();
  bool adjoins(const Access& a, const Access& b, std::uint64_t burst_bytes) const;
  void land(Access& access);

  const DmaParams params_;
  const PcieLink link_;
  Direction to_host_;
  Direction to_device_;
  Load load_;                                  // of to_host_
  std::deque<Access> accesses_;
  std::vector<Access*> idle_;                  // of those
  Fifo<Access*> waiting_reads_;                // for tags or bytes, or behind a write that waits
  Fifo<Access*> waiting_writes_;               // for posted credits
  std::uint64_t writes_queued_ = 0;            // ever
  std::uint64_t writes_unqueued_ = 0;
  Fifo<Posted> posted_;                        // credits that the host will give back, and when
  Credits posted_sum_;
  Alarm credits_back_{[this] { issue_waiting(); }};
  DelayLine<Access*> reads_{[this] { complete_reads(); }};
  Fifo<Access*> writes_;
  DelayLine<std::uint32_t> bursts_{[this] { land_bursts(); }};  // how many of writes_ land together
  std::uint64_t burst_bytes_ = 0;              // of the last of them
  std::uint64_t writes_pushed_ = 0;            // into writes_, ever
  std::uint64_t writes_landed_ = 0;            // of those
  DelayLine<Access*> lone_writes_{[this] { land_lone_writes(); }};
  std::vector<std::byte> scratch_;
  Payload zeros_;
  std::uint64_t tags_in_use_ = 0;
  std::uint64_t bytes_in_flight_ = 0;
  Duration lone_free_;
  Duration last_landing_;                      // of all writes issued
  DmaCounters counters_;
};

}  // namespace rnicsim::nic
