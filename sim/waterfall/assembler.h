// SPDX-License-Identifier: Apache-2.0
// Assembles journeys of work requests from events of the trace points. Independent of the simulation: each event
// carries its time, so tests can make their own. Keeps only journeys in flight.
//
// A work request is identified by (host, QP, message), its packets by PSN, its frames by Frame::id, its CQE by CQ and
// index. The last packet of a message is followed; of several attempts the one that was answered.
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
    Duration post_wqe;  // time from one WQE of a list to the next
    Duration detect;    // time until a CPU sees memory that was written
  };
  // `costs`: by host.
  explicit Assembler(std::vector<Costs> costs) : costs_(std::move(costs)), hosts_(costs_.size()) {}

  std::function<void(const Journey&)> finished;

  // --- Events of the CPU.
  void software(std::uint32_t host, const abi::Milestone& milestone);
  // --- Events of the device, until a WQE is taken.
  void doorbell(std::uint32_t host, Duration at, const nic::DoorbellRung& rung, Duration stored);
  void doorbell_taken(std::uint32_t host, Duration at, const nic::DoorbellTaken& taken);
  void wqe_taken(std::uint32_t host, Duration at, const nic::WqeTaken& wqe);
  void qp_reset(std::uint32_t host, nic::Qpn qpn);
  // --- Events of packets.
  void request_began(std::uint32_t host, Duration at, const nic::RequestBegan& began);
  void translated(std::uint32_t host, Duration at, nic::Tag tag);
  void packet_sent(std::uint32_t host, Duration at, const nic::PacketTrace& packet, std::optional<std::uint32_t> to);
  void frame_scheduled(std::uint32_t host, const nic::FrameScheduled& frame);
  void packet_received(std::uint32_t host, const nic::PacketTrace& packet);
  void request_taken(std::uint32_t host, Duration at, const nic::RequestTaken& taken);
  void request_placed(std::uint32_t host, Duration at, const nic::RequestPlaced& placed);
  void answer_taken(std::uint32_t host, Duration at, const nic::AnswerTaken& taken);
  void answer_placed(std::uint32_t host, Duration at, const nic::AnswerPlaced& placed);
  // --- Events of completion.
  void send_completed(std::uint32_t host, Duration at, const nic::SendCompleted& completed);
  void cqe_written(std::uint32_t host, const nic::CqeWritten& written);
  void cqe_landed(std::uint32_t host, Duration at, const nic::CqeLanded& landed);

  std::uint64_t taken() const { return taken_; }    // number of send WQEs
  std::uint64_t failed() const { return failed_; }  // completed with an error, or flushed
  std::uint64_t complete() const { return complete_; }
  std::uint64_t lost() const { return lost_; }  // completed, but the events did not show the whole way
  // `lost` ones, and journeys with a stage that ended before it began. Should be 0.
  std::uint64_t irregular() const { return irregular_; }

 private:
  struct Draft {
    Journey journey;
    Milestones at;
    std::optional<Duration> seen;  // time when the peer's last message was seen, before the post
  };
  // One attempt to send the last packet: from its turn on a transmit unit until its payload is in the peer's memory.
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
    Duration run_begun{};  // start of the present pass; a retransmission from an earlier packet starts a new one
    roce::Psn last_begun{};
    boost::container::small_vector<Attempt, 1> attempts{};
    bool answered = false;
    bool told_one_way = false;
    bool lost = false;
    bool unreliable = false;  // no answers: complete when the last packet has left

    roce::Psn end() const { return first + packets; }
  };
  // A message of an unreliable transport that is complete and still on the wire.
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
    Duration begins{};  // start of its transmission
    std::optional<Duration> arrived{};
  };
  struct Expected {  // a CQE for the WQE at `index`
    std::uint16_t index;
    std::optional<Draft> draft;
  };
  struct QueueName {
    std::uint32_t host, qpn;
  };
  struct Queue {
    std::deque<Posting> postings;
    std::deque<Doorbell> doorbells;
    std::deque<Flight> flights;  // in the order of messages
    std::size_t answered = 0;    // number of answered flights, at the front of `flights`
    std::deque<Answer> answers;  // answers to this queue pair, in the order of frames
    std::deque<Expected> completing;
    std::optional<QueueName> sender;  // queue pair whose requests arrive here
    std::deque<Expected> receiving;
    std::deque<Departed> arriving;  // taken and not yet placed
    std::optional<Duration> seen;   // time when a message for this queue pair was last seen, since the last post
  };
  struct Entry {
    std::uint32_t qpn;
    std::optional<Draft> draft{};
  };
  struct CompletionRing {
    std::deque<Entry> entries;  // written and not yet polled
    std::uint32_t next = 0;     // index of the next entry
  };
  struct Sending {  // a packet that has not left
    QueueName requester{};
    bool answer = false;
    roce::Psn psn{};
  };
  struct HostState {
    std::unordered_map<std::uint32_t, Queue> queues;  // never iterated: the order would not be fixed
    std::map<std::uint32_t, CompletionRing> rings;
    std::unordered_map<nic::Tag, std::pair<std::uint32_t, std::uint64_t>> gathers;  // QP and message by tag
    std::unordered_map<std::uint64_t, Sending> sending;                             // by frame
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
