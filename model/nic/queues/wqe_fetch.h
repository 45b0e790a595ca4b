// Fetches the bytes of send and receive rings, and doorbell records, for the engine.
#pragma once

#include "model/base/stats.h"
#include "model/base/stream.h"
#include "model/base/trace.h"
#include "model/nic/pcie/dma.h"
#include "model/nic/seam/qp_engine.h"

namespace rnicsim::nic {

struct WqeFetchCounters {
  Counter fetches = 0;
  Counter bytes = 0;

  void describe(CounterVisitor& visit) const {
    visit.counter("fetches", fetches, "requests", "reads of rings and doorbell records");
    visit.counter("bytes", bytes, "bytes", "bytes of them");
  }
};

class WqeFetcher : DmaClient {
 public:
  explicit WqeFetcher(Dma& dma) : dma_(dma) {}

  Output<WqeBytes> fetched;
  trace::Point<WqeFetch> requested;

  void fetch(const WqeFetch& request) {
    ++counters_.fetches;
    counters_.bytes += request.bytes;
    requested(request);
    dma_.read(request.pasid, request.address, request.bytes, {this, 0, request.tag});
  }

  const WqeFetchCounters& counters() const { return counters_; }

 private:
  void dma_done(std::uint32_t, std::uint64_t tag, AccessResult result, Payload&& data) override {
    fetched({tag, result == AccessResult::ok, std::move(data)});
  }

  Dma& dma_;
  WqeFetchCounters counters_;
};

}  // namespace rnicsim::nic
