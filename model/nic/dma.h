// The DMA unit: every access of the device to host memory, with PCIe's time. Reads sample memory when they complete,
// writes land when they arrive. Each direction is one FIFO: a bandwidth service, then a latency.
//
// Accesses to adjoining addresses that are under way together are made in one call to the host (up to `burst`): a call
// into an attached process is dear. A read is then sampled up to a burst early, but never before it was issued.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "model/base/delay_line.h"
#include "model/base/fifo.h"
#include "model/base/params.h"
#include "model/base/payload.h"
#include "model/base/pcie.h"
#include "model/base/stats.h"
#include "model/nic/qp_engine.h"

namespace rnicsim::nic {

using namespace rnicsim::literals;

struct DmaParams {
  Duration read_latency = 400_ns;
  Duration read_internal = 60_ns;
  Duration write_latency = 150_ns;
  BitRate rate{122'200'000'000};
  ByteCount max_payload{256};
  ByteCount request_header{24};
  ByteCount completion_header{20};
  ByteCount burst = 64_KiB;

  void describe(ParamVisitor& visit);
};

struct DmaCounters {
  Counter reads = 0;
  Counter read_bytes = 0;
  Counter writes = 0;
  Counter write_bytes = 0;
  Counter errors = 0;

  void describe(CounterVisitor& visit) const;
};

class Dma : public sc_core::sc_module {
 public:
  using Done = std::function<void(AccessResult, Payload)>;  // what was read; nothing after a write
  struct Placement {
    bool more = false;          // may land together with the next write, at that one's time
    bool right_behind = false;  // follows a write that has just landed: no latency of its own
  };

  Dma(sc_core::sc_module_name name, const DmaParams& params);

  // Bound to the endpoint.
  std::function<bool(tlm::tlm_command, Pasid, std::uint64_t, std::span<std::byte>)> transfer;

  void read(Pasid pasid, std::uint64_t address, std::uint32_t bytes, Done done);
  void write(Pasid pasid, std::uint64_t address, Payload data, Done done) {
    write(pasid, address, std::move(data), std::move(done), Placement{});
  }
  void write(Pasid pasid, std::uint64_t address, Payload data, Done done, Placement placement);
  void reset();

  const DmaCounters& counters() const { return counters_; }

 private:
  struct Access {
    Pasid pasid = 0;
    std::uint64_t address = 0;
    Payload data;
    Done done;
    AccessResult result = AccessResult::ok;
    bool sampled = false;
    bool more = false;
  };

  void complete_reads();
  void sample_burst(Access& first);
  void sample(Access& access);
  bool joins_burst(const Access& access);
  void land_bursts();
  bool land_together(std::uint32_t count);
  void land_lone_writes();
  bool adjoins(const Access& a, const Access& b, std::uint64_t burst_bytes) const;
  void land(Access& access);
  Duration service(std::uint64_t bytes, ByteCount header) const;

  const DmaParams params_;
  DelayLine<Access> reads_{"reads"};
  Fifo<Access> writes_;
  DelayLine<std::uint32_t> bursts_{"bursts"};  // how many of writes_ land together
  std::uint64_t burst_bytes_ = 0;              // of the last of them
  DelayLine<Access> lone_writes_{"lone_writes"};
  std::vector<std::byte> scratch_;
  Duration read_free_;
  Duration write_free_;
  Duration lone_free_;
  DmaCounters counters_;
};

}  // namespace rnicsim::nic
