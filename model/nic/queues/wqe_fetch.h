// SPDX-License-Identifier: Apache-2.0
// Fetches bytes of send and receive rings, and doorbell records, for the engine. The device has space for the
// read-ahead receives of a limited number of QPs: those of another QP displace the receives of one of these, which are
// read again later. The number of concurrent reads of receive rings is limited, too.
#pragma once

#include <string>

#include "model/base/policy.h"
#include "model/base/stream.h"
#include "model/base/trace.h"
#include "model/nic/contexts/cache.h"
#include "model/nic/contexts/miss_slots.h"
#include "model/nic/pcie/dma.h"
#include "model/nic/queues/wqe_fetch_params.h"
#include "model/nic/seam/qp_engine.h"

namespace rnicsim::nic {

class WqeFetcher : DmaClient {
 public:
  WqeFetcher(const ReceiveWqeParams& params, Dma& dma)
      : dma_(dma),
        room_(params.queues, params.ways, params.replacement),
        slots_(params.reads, counters_.receive_reads) {}

  Output<WqeBytes> fetched;
  Output<Qpn> displaced;  // the receives held for this QP have left the device
  trace::Point<WqeFetch> requested;

  void fetch(const WqeFetch& request) {
    ++counters_.fetches;
    counters_.bytes += request.bytes;
    requested(request);
    if (request.queue == QueueKind::send) return read(request);
    make_room(request.qpn);
    slots_.take([this, request] { read(request); });
  }
  void seed(std::uint64_t seed) { room_.seed(seed); }  // seed of random replacement
  void reset() {
    ++resets_;
    room_.clear();
    slots_.clear();
  }

  const WqeFetchCounters& counters() const { return counters_; }

 private:
  // DmaReply::kind: number of resets, and the queue.
  std::uint32_t kind(QueueKind queue) const { return resets_ << 1 | static_cast<std::uint32_t>(queue); }

  void make_room(Qpn qpn) {
    if (room_.touch(qpn.value)) return;
    const auto loser = room_.insert(qpn.value);
    if (!loser) return;
    ++counters_.displaced;
    displaced(Qpn{static_cast<std::uint32_t>(*loser)});
  }
  void read(const WqeFetch& request) {
    dma_.read(request.pasid, request.address, request.bytes, {this, kind(request.queue), request.tag});
  }
  void dma_done(std::uint32_t of, std::uint64_t tag, AccessResult result, Payload&& data) override {
    if (of == kind(QueueKind::receive)) slots_.give_back();
    fetched({tag, result == AccessResult::ok, std::move(data)});
  }

  Dma& dma_;
  WqeFetchCounters counters_;
  CacheTags room_;  // by QP
  MissSlots slots_;
  std::uint32_t resets_ = 0;  // a reply from before a reset has no slot
};

}  // namespace rnicsim::nic
