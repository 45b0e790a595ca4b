// SPDX-License-Identifier: Apache-2.0
// Shared receive queues: reads entries ahead of the QPs that take them, gives each entry to one QP in the order of
// posting, and raises the limit event. There is no doorbell: the producer is in the doorbell record. Only an entry
// itself names its successor, so adjacent entries are read together and used as far as the chain follows them.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "model/base/event_queue.h"
#include "model/base/stream.h"
#include "model/nic/contexts/context_cache.h"
#include "model/nic/queues/event_writer.h"
#include "model/nic/queues/shared_receives_counters.h"
#include "model/nic/seam/qp_engine.h"

namespace rnicsim::nic {

class SharedReceives : DmaClient {
 public:
  SharedReceives(const Personality& personality, ContextCache& contexts, Dma& dma, EventWriter& events)
      : personality_(personality), contexts_(contexts), dma_(dma), events_(events) {}

  Output<SrqTaken> taken;

  void take(const SrqTake& take);
  void give_back(const SrqGiveBack& back);
  // The context has changed: bits of SrqModification.
  void modified(std::uint32_t srqn, std::uint32_t attributes);
  // The queue's completions can no longer be written: error state.
  void fail(std::uint32_t srqn);
  // Call before the queue is destroyed.
  void destroyed(std::uint32_t srqn);
  void reset();

  const SharedReceiveCounters& counters() const { return counters_; }

 private:
  struct Waiting {
    SrqTake take;
    std::uint64_t asked;  // number of reads begun before: their results may be older than the request
  };
  struct Read {
    enum class What : std::uint8_t { record, entries, returned };
    What what;
    std::uint64_t number = 0;
    Pasid pasid = 0;
    std::uint64_t address = 0;
    std::uint32_t bytes = 0;
    std::uint16_t first = 0;  // index of the first entry
    std::uint16_t taken = 0;  // srq.taken when the read began
    bool done = false;
    bool ok = false;
    Payload data{};
  };
  // Work under way of a queue, besides its context.
  struct Work {
    std::deque<Waiting> takes;
    std::deque<std::uint16_t> returned;  // indices given back: they go before the chain
    std::deque<ReceiveWqe> held;         // entries read ahead
    std::uint16_t next = 0;              // index of the entry after `held`; of the head if `held` is empty
    std::uint16_t ahead = 0;             // entries from `next` on that are known to be posted

    // Entries that are posted and not taken, as far as known.
    std::size_t posted() const { return ahead + held.size() + returned.size(); }
    bool idle() const { return !read && takes.empty() && posted() == 0; }
    std::uint16_t uncounted = 0;  // returned entries that the context does not count yet
    std::optional<Read> read;
    bool looking = false;        // waits for the context
    bool fails = false;          // must enter the error state
    bool check_limit = false;    // the limit must be checked with the next read of the record
    std::uint64_t armed_at = 0;  // number of reads begun before the limit was set
  };
  using Answers = std::vector<SrqTaken>;

  void proceed(std::uint32_t srqn);
  void await(std::uint32_t srqn);
  void serve(std::uint32_t srqn, SharedReceiveQueue& srq);
  bool may_take(const SrqTake& take) const;
  [[gnu::noinline]] void answer_looks(std::uint32_t srqn, const SharedReceiveQueue& srq, Work& work, Answers& answers);
  void absorb(std::uint32_t srqn, SharedReceiveQueue& srq, Work& work, Answers& answers);
  bool absorb_record(std::uint32_t srqn, SharedReceiveQueue& srq, Work& work, const Read& read, Answers& answers);
  bool absorb_entries(const SharedReceiveQueue& srq, Work& work, const Read& read);
  void hand_out(std::uint32_t srqn, SharedReceiveQueue& srq, Work& work, Answers& answers);
  void hand_over(std::uint32_t srqn, SharedReceiveQueue& srq, Work& work, ReceiveWqe&& entry, Answers& answers);
  void answer_empty(std::uint32_t srqn, Work& work, std::uint64_t read, Answers& answers);
  std::optional<Read> next_read(const SharedReceiveQueue& srq, const Work& work, bool gave) const;
  void begin(std::uint32_t srqn, Read& read);
  void dma_done(std::uint32_t srqn, std::uint64_t number, AccessResult result, Payload&& data) override;
  void die(std::uint32_t srqn, SharedReceiveQueue& srq, Work& work);
  void fail_takes(std::uint32_t srqn, Work& work, Answers& answers);
  void due();

  const Personality& personality_;
  ContextCache& contexts_;
  Dma& dma_;
  EventWriter& events_;
  std::map<std::uint32_t, Work> work_;
  std::uint64_t reads_ = 0;
  EventQueue<std::uint32_t> at_hand_{[this] { due(); }};  // queues with a context in the cache's second level
  SharedReceiveCounters counters_;
};

}  // namespace rnicsim::nic
