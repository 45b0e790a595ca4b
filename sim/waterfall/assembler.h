// Puts journeys together from what the trace points tell. It knows no simulation: each event comes with its time, so
// that events of a test's own making will do. It keeps what is in flight.
//
// A work request is (host, QP, message); its packets are found by their PSN, its frames by Frame::id, its CQE by CQ and
// index. Of a message of several packets the last one is followed; of several attempts that which was answered.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "model/abi/attach.h"
#include "model/nic/contexts/processing_units.h"
#include "model/nic/packets/packet_tx.h"
#include "model/nic/packets/port.h"
#include "model/nic/queues/completion.h"
#include "model/nic/queues/doorbell.h"
#include "model/nic/seam/engine_trace.h"
#include "sim/waterfall/journey.h"

namespace rnicsim::sim {

class Assembler {
 public:
  struct Costs {
    Duration post_wqe;  // the WQEs of a list are begun so long one after another
    Duration detect;    // memory written until a CPU sees it
  };
  // By host.
  explicit Assembler(std::vector<Costs> costs) : costs_(std::move(costs)), hosts_(costs_.size()) {}

  std::function<void(const Journey&)> finished;

  // --- The CPU.
  void software(std::uint32_t host, const abi::Milestone& milestone);
  // --- The device, until the WQE is taken.
  void doorbell(std::uint32_t host, Duration at, const nic::DoorbellRung& rung, Duration stored);
  void doorbell_taken(std::uint32_t host, Duration at, const nic::DoorbellTaken& taken);
  void wqe_taken(std::uint32_t host, Duration at, const nic::WqeTaken& wqe);
  void qp_reset(std::uint32_t host, nic::Qpn qpn);
  // --- Packets.
  void request_began(std::uint32_t host, Duration at, const nic::RequestBegan& began);
  void translated(std::uint32_t host, Duration at, nic::Tag tag);
  void packet_sent(std::uint32_t host, Duration at, const nic::PacketTrace& packet, std::optional<std::uint32_t> to);
  void frame_scheduled(std::uint32_t host, const nic::FrameScheduled& frame);
  void packet_received(std::uint32_t host, const nic::PacketTrace& packet);
  void request_taken(std::uint32_t host, Duration at, const nic::RequestTaken& taken);
  void request_placed(std::uint32_t host, Duration at, const nic::RequestPlaced& placed);
  void answer_taken(std::uint32_t host, Duration at, const nic::AnswerTaken& taken);
  void answer_placed(std::uint32_t host, Duration at, const nic::AnswerPlaced& placed);
  // --- Completion.
  void send_completed(std::uint32_t host, Duration at, const nic::SendCompleted& completed);
  void cqe_written(std::uint32_t host, const nic::CqeWritten& written);
  void cqe_landed(std::uint32_t host, Duration at, const nic::CqeLanded& landed);

  std::uint64_t taken() const { return taken_; }    // send WQEs
  std::uint64_t failed() const { return failed_; }  // completed with an error, or were flushed
  std::uint64_t complete() const { return complete_; }
  std::uint64_t lost() const { return lost_; }  // completed, but their way was not told
  // Those, and others of whom a stage ended before it began: none, one hopes.
  std::uint64_t irregular() const { return irregular_; }

 private:
  struct Draft {
    Journey journey;
    Milestones at;
    std::optional<Duration> seen;  // what the peer had sent last, before it was posted
  };
  // From the last packet's turn on a transmit unit until it is in the peer's memory.
  struct Attempt {
    roce::Psn psn;
    std::optional<nic::Tag> gather;
    std::uint64_t frame = 0;
    Milestones at{};
  };
  struct Flight {
    std::uint64_t message = 0;
    roce::Psn first;
    std::uint32_t packets = 0;
    Draft draft;
    bool begun = false;
    Duration run_begun{};  // since it was last sent from an earlier packet on
    roce::Psn last_begun{};
    boost::container::small_vector<Attempt, 1> attempts{};
    bool answered = false;
    bool told_one_way = false;
    bool lost = false;
    bool unreliable = false;  // nobody answers: it is complete when its last packet has left

    roce::Psn end() const { return first + packets; }
  };
  // Of an unreliable transport, complete and on its way.
  struct Departed {
    Draft draft;
    Attempt attempt;
  };
  struct Posting {
    std::uint16_t first;
    std::uint32_t count;
    Duration at;
    std::uint32_t taken = 0;
  };
  struct Doorbell {
    std::uint16_t producer;
    Duration stored, arrived;
    std::optional<Duration> context{};
  };
  struct Answer {
    std::uint64_t frame;
    Duration sent;
    Duration begins{};  // to leave
    std::optional<Duration> arrived{};
  };
  struct Expected {  // a CQE, for the WQE at `index`
    std::uint16_t index;
    std::optional<Draft> draft;
  };
  struct QueueName {
    std::uint32_t host, qpn;
  };
  struct Queue {
    std::deque<Posting> postings;
    std::deque<Doorbell> doorbells;
    std::deque<Flight> flights;  // by message
    std::size_t answered = 0;    // of them, the first so many
    std::deque<Answer> answers;  // to it, by frame
    std::deque<Expected> completing;
    std::optional<QueueName> sender;  // whose requests come here
    std::deque<Expected> receiving;
    std::deque<Departed> arriving;    // taken, and not placed
    std::optional<Duration> seen;  // when a message for it was last seen, since the last post
  };
  struct Entry {
    std::uint32_t qpn;
    std::optional<Draft> draft{};
  };
  struct CompletionRing {
    std::deque<Entry> entries;  // written, not polled
    std::uint32_t next = 0;     // index of the one after the last
  };
  struct Sending {  // a packet that has not left
    QueueName requester{};
    bool answer = false;
    roce::Psn psn{};
  };
  struct HostState {
    std::unordered_map<std::uint32_t, Queue> queues;  // never iterated
    std::map<std::uint32_t, CompletionRing> rings;
    std::unordered_map<nic::Tag, std::pair<std::uint32_t, std::uint64_t>> gathers;  // QP and message
    std::unordered_map<std::uint64_t, Sending> sending;  // by frame
  };

  Queue& queue(std::uint32_t host, std::uint32_t qpn) { return hosts_[host].queues[qpn]; }
  static Flight* flight_of(Queue& queue, std::uint64_t message);
  static Flight* flight_at(Queue& queue, roce::Psn psn);
  static Attempt* attempt_of(Queue& queue, roce::Psn psn, std::uint64_t frame);
  Queue* requester_of(std::uint32_t host, nic::Qpn responder);
  std::optional<Duration> posted(std::uint32_t host, Queue& queue, std::uint16_t index);
  void polled(std::uint32_t host, const abi::Milestone& milestone);
  void tell_one_way(std::uint32_t host, Duration at, const nic::RequestPlaced& placed, Flight& flight,
                    const Attempt& attempt);
  void tell_one_way(std::uint32_t host, Duration at, const nic::RequestPlaced& placed, Draft draft,
                    const Attempt& attempt);
  void settle(Flight& flight, const Answer* answer, Duration at);
  void depart(Flight& flight, Duration at);
  void departed_placed(std::uint32_t host, Duration at, const nic::RequestPlaced& placed);
  void finish(Draft& draft);

  const std::vector<Costs> costs_;
  std::vector<HostState> hosts_;
  std::map<std::uint64_t, Departed> departed_;  // by frame
  std::uint64_t taken_ = 0, failed_ = 0, complete_ = 0, lost_ = 0, irregular_ = 0;
};

}  // namespace rnicsim::sim
