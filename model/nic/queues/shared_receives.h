// Shared receive queues: reads their entries ahead of the QPs that ask for them, hands each to one QP in the order in
// which they were posted, and raises the limit event. There is no doorbell: the producer stands in the doorbell record.
// Which entry follows another only the entry itself says, so neighbours in memory are read together and used as far as
// the chain goes through them.
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
  // Its context has changed: SrqModification bits.
  void modified(std::uint32_t srqn, std::uint32_t attributes);
  // Its completions can't be written any more.
  void fail(std::uint32_t srqn);
  // It is about to go.
  void destroyed(std::uint32_t srqn);
  void reset();

  const SharedReceiveCounters& counters() const { return counters_; }

 private:
  struct Waiting {
    SrqTake take;
    std::uint64_t asked;                  // reads begun before it came: what they find may be older
  };
  struct Read {
    enum class What : std::uint8_t { record, entries, returned };
    What what;
    std::uint64_t number = 0;
    Pasid pasid = 0;
    std::uint64_t address = 0;
    std::uint32_t bytes = 0;
    std::uint16_t first = 0;              // index of the first entry
    std::uint16_t taken = 0;              // the queue's count when it began
    bool done = false;
    bool ok = false;
    Payload data{};
  };
  // What is under way of a queue, beside its context.
  struct Work {
    std::deque<Waiting> takes;
    std::deque<std::uint16_t> returned;   // indices given back: they go before the chain
    std::deque<ReceiveWqe> held;          // read ahead
    std::uint16_t next = 0;               // index of the entry behind those; of the head, without any
    std::uint16_t ahead = 0;              // entries from there on that are known to be posted

    // Posted and not taken, as far as the device knows.
    std::size_t posted() const { return ahead + held.size() + returned.size(); }
    bool idle() const { return !read && takes.empty() && posted() == 0; }
    std::uint16_t uncounted = 0;          // of those, that the context does not know of yet
    std::optional<Read> read;
    bool looking = false;                 // for the context
    bool fails = false;                   // it is to be in error
    bool check_limit = false;             // by a look at the record that is still to come
    std::uint64_t armed_at = 0;           // reads begun before the limit was set
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
  EventQueue<std::uint32_t> at_hand_{[this] { due(); }};  // whose context comes from the cache's second level
  SharedReceiveCounters counters_;
};

}  // namespace rnicsim::nic
