// SPDX-License-Identifier: Apache-2.0
// The completion unit: CQ entries, arming, and CQ overruns.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "model/base/event_queue.h"
#include "model/base/lazy_timers.h"
#include "model/base/stream.h"
#include "model/base/trace.h"
#include "model/nic/contexts/context_cache.h"
#include "model/nic/queues/completion_counters.h"
#include "model/nic/queues/event_writer.h"
#include "model/nic/seam/qp_engine.h"

namespace rnicsim::nic {

struct CqeWritten {
  Cqn cqn;
  std::uint32_t index;
  Cqe cqe;
  bool inline_data = false;  // the CQE carries its message
};

struct CqeLanded {
  Cqn cqn;
  std::uint32_t index;
};

// A CQ that overran, and the XRC queue pairs that lost completions, since the CQ belongs to the SRQ and not to them.
struct CqOverrun {
  Cqn cqn;
  std::vector<Qpn> losers;
};

class Completion : public sc_core::sc_module, DmaClient {
 public:
  Completion(sc_core::sc_module_name name, const Personality& personality, ContextCache& contexts, Dma& dma,
             EventWriter& events, PcieEndpoint& pcie);

  Output<CqOverrun> overrun;
  // Result of a resize; `producer`: the first position in the new ring.
  enum class Resize { done, dead, too_small };
  struct Resized {
    Resize result;
    std::uint32_t producer;
  };
  Output<Resized> resized;
  Output<CqeWrite> forgotten;        // an entry that is not written because its QP is destroyed
  trace::Point<CqeWritten> written;  // the entry is on its way to memory
  trace::Point<CqeLanded> landed;    // the entry is in memory

  [[gnu::flatten]] void write(CqeWrite&& request);
  // Raises an event after all earlier writes to a CQ.
  void announce_behind(Cqn cqn, const EventOut& event);
  void arm(std::uint32_t cqn, bool solicited_only, std::uint32_t consumer);
  // The CQ's moderation has changed.
  void moderated(std::uint32_t cqn);
  // Continues in another ring, unless the entries that the driver has not consumed do not fit.
  void resize(const CqResize& request);
  // Cancels entries of this QP, except those for an XRC SRQ's CQ.
  void forget_qp(Qpn qpn);
  void forget_cq(std::uint32_t cqn) {
    waiting_.erase(cqn);
    looking_.erase(cqn);
    moderations_.erase(cqn);
  }
  void reset() {
    waiting_.clear();
    looking_.clear();
    at_hand_.clear();
    moderations_.clear();
    moderation_timers_.clear();
  }

  const CompletionCounters& counters() const { return counters_; }

 private:
  struct Waiting {
    std::deque<CqeWrite> entries;  // in order; they wait for the context, or for a read of the consumer
    bool refreshing = false;
    std::vector<EventOut> events{};  // raised after the entries
  };

  [[gnu::noinline]] void await(std::uint32_t cqn);
  [[gnu::noinline]] void hold(CqeWrite&& request);
  void drain_due();
  [[gnu::noinline]] void drain(std::uint32_t cqn, CompletionQueue* queue);
  // True for a CQE of a destroyed XRC SRQ: no program could identify its receive.
  bool passes_over(const CqeWrite& request);
  void write_entry(CompletionQueue& queue, CqeWrite& request);
  void dma_done(std::uint32_t cqn, std::uint64_t index, AccessResult, Payload&&) override;  // an entry has landed
  [[gnu::noinline]] void withhold(CompletionQueue& queue, std::uint32_t cqn, std::uint32_t cqes);
  void start_period(const CompletionQueue& queue, std::uint32_t cqn);
  void raise(CompletionQueue& queue, std::uint32_t cqn);
  void end_moderations();
  [[gnu::noinline]] void look_ahead(std::uint32_t cqn, const CompletionQueue& queue);
  void take_consumer(CompletionQueue& queue, std::uint32_t consumer);
  void refresh(std::uint32_t cqn, const CompletionQueue& queue);
  void refreshed(std::uint32_t cqn, AccessResult result, const Payload& record);
  void resize_at(std::optional<std::uint32_t> consumer, const CqResize& request);
  void stop_waiting(std::uint32_t cqn);
  std::vector<Qpn> losers_of(std::uint32_t cqn) const;
  [[gnu::noinline]] void lose(std::uint32_t cqn);
  void die(std::uint32_t cqn, CompletionQueue& queue);

  std::uint32_t consumer_in(const Payload& record) const;

  const Personality& personality_;
  ContextCache& contexts_;
  Dma& dma_;
  EventWriter& events_;
  PcieEndpoint& pcie_;
  std::map<std::uint32_t, Waiting> waiting_;
  std::unordered_set<std::uint32_t> looking_;  // CQs whose consumer is being read while entries are still written
  EventQueue<std::uint32_t> at_hand_{[this] { drain_due(); }};  // CQs with a context in the cache's second level
  std::unordered_map<std::uint32_t, LazyTimer> moderations_;
  LazyTimers<std::uint32_t> moderation_timers_{[this] { end_moderations(); }};
  CompletionCounters counters_;
};

}  // namespace rnicsim::nic
