// SPDX-License-Identifier: Apache-2.0
// The interface between a queue pair's transport (the core) and the shell, which has rings, memory and time
// (model/nic/engine/shell/engine_shell.h). Events go in, actions come out. A core has no clock, no memory, no payload.
// Free choices of an implementation (which queue pair sends next, when a timer fires) come from the shell.
//
// A core calls actions within the call of an event, or later, between CoreActions::begin_step() and end_step(). The
// actions of one queue pair come in the order of their events.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/roce/completer.h"
#include "model/roce/headers.h"
#include "model/roce/requester.h"
#include "model/roce/send_window.h"
#include "model/roce/verdict.h"

namespace rnicsim::roce {

using Slot = std::uint32_t;  // index of a queue pair in its core

enum class MemoryResult : std::uint8_t {
  ok,
  refused,  // the key does not grant the access
  unreachable
};

enum class Timer : std::uint8_t { ack, rnr };

// An answer that is sent now.
struct SentAnswer {
  bool is_read = false;  // a packet of a READ response, with the bytes of `range`
  bool begins = true;
  bool fatal = false;  // a NAK after which the queue pair is in error
  RemoteRange range;
  std::uint32_t domain = 0;  // XRC: domain of the key
};

// State that every core reports: the contents of a context.
struct CoreState {
  Psn oldest_unanswered;
  Psn unsent;  // one past the last PSN ever sent
  Psn expected;
  std::uint32_t msn = 0;
  std::uint8_t retries_left = 0;
  std::uint8_t rnr_retries_left = 0;
  bool drained = false;
  bool idle = true;  // no pending answer, so no action comes without an event
};

// The payload or the atomic of a request failed in memory. Reliable transports: a NAK is pending for it.
struct PlacementFailure {
  AnswerId pending_answer = 0;
  bool to_receive = false;  // the payload belonged to a receive WQE
  bool completes_receive = false;
  bool refused = false;  // the requester's key did not grant the access
};

class CoreActions {
 public:
  virtual void begin_step() = 0;
  virtual void end_step() = 0;
  // Called outside of an event's call: a packet can be sent that could not be sent before; `answers`: or a request can
  // be checked that was busy.
  virtual void moved(Slot slot, bool answers) = 0;

  // --- Sends.
  virtual void posted(Slot slot, std::uint64_t message, Psn first, std::uint32_t packets) = 0;
  // The outcome of the oldest response packet without an outcome. `rewound`: requests that have not left are void.
  virtual void responded(Slot slot, const ResponseOutcome& outcome, Psn oldest) = 0;
  virtual void ack_timed_out(Slot slot, bool rewound) = 0;
  // The oldest message is complete. After an error nothing is sent, and the shell halts or fails the queue pair.
  // `placed_last`: the payload of its response has just reached memory.
  virtual void completed(Slot slot, std::uint64_t message, Status status, bool placed_last) = 0;
  virtual void local_work(Slot slot, std::uint64_t message) = 0;
  virtual void drained(Slot slot) = 0;
  // Starts a timer with the time of `code` (IBTA vol 1: ACK timeout, RNR timer). Cores with timers of their own never
  // call it. `few`: at most LossRecovery::few_in_flight packets are in flight.
  virtual void arm(Slot slot, Timer timer, std::uint8_t code, bool few) = 0;
  virtual void cancel(Slot slot, Timer timer) = 0;

  // --- Answers.
  // Whether the access of a verdict is granted, if this is known at once; nullopt: validated() gets the verdict.
  virtual std::optional<bool> granted(Slot slot, const Verdict& wanted) = 0;
  virtual void validated(Slot slot, const Verdict& verdict) = 0;
  // Executes the atomic of request `psn`. XRC: `domain` is the domain of the key.
  virtual void start_atomic(Slot slot, AnswerId pending_answer, Psn psn, const AtomicEth& operation, bool is_swap,
                            std::uint32_t domain) = 0;
  virtual void invalidate(Slot slot, AnswerId pending_answer, Rkey key) = 0;
  // A message with a receive is complete: its payload and all earlier payload is in memory.
  virtual void receive_completed(Slot slot, AnswerId pending_answer) = 0;
  virtual void placement_failed(Slot slot, const PlacementFailure& failure) = 0;

  virtual void told(Slot slot, const CoreState& state) = 0;  // the result of query()

 protected:
  ~CoreActions() = default;
};

class QpCore {
 public:
  virtual ~QpCore() = default;
  virtual void bind(CoreActions& actions) = 0;
  virtual void forget_all() = 0;

  // --- Life of a queue pair. open(): nullopt: no room.
  virtual std::optional<Slot> open(Transport transport) = 0;
  virtual void close(Slot slot) = 0;
  virtual void reset(Slot slot) = 0;
  virtual void start_answers(Slot slot, const ResponderAttributes& attributes, Psn expected) = 0;
  virtual void update_answers(Slot slot, const ResponderAttributes& attributes) = 0;
  virtual void start_sends(Slot slot, const SendAttributes& attributes, Psn first) = 0;
  // Also leaves the halted state.
  virtual void update_sends(Slot slot, const SendAttributes& attributes, bool draining) = 0;
  virtual void halt_sends(Slot slot) = 0;  // flushes sends; answers continue
  virtual void fail(Slot slot) = 0;        // flushes sends, drops pending answers
  virtual void query(Slot slot) = 0;
  virtual bool in_use(Slot slot) const = 0;  // actions for work under way may still come

  // --- Sends. A message's id is one more than that of the message posted before.
  virtual std::size_t post_room(Slot slot) const = 0;  // further messages that the core stores until their turn
  virtual void post(Slot slot, const SendRequest& request) = 0;
  virtual void settle_sends(Slot slot) = 0;  // after post()
  // The message of the next request packet; nullopt: no packet can be sent.
  virtual std::optional<std::uint64_t> next_send(Slot slot) = 0;
  virtual bool sends_again(Slot) const { return false; }  // the next request packet is a retransmission
  virtual SentRequest send(Slot slot, Headers& headers) = 0;
  virtual void left(Slot slot, bool is_request, Psn end) = 0;           // a packet is on the wire
  virtual void dropped_requests(Slot slot, std::uint32_t packets) = 0;  // void packets that never left
  // Bytes of the message could not be read; `packets` packets are void.
  virtual void unreadable(Slot slot, std::uint64_t message, Status status, std::uint32_t packets) = 0;
  virtual void response(Slot slot, const Headers& headers, std::uint32_t payload) = 0;
  virtual void response_placed(Slot slot, std::uint64_t message, Status status) = 0;
  virtual void local_work_done(Slot slot, std::uint64_t message, Status status) = 0;
  // `early`: before the timeout asked for, so no retry is counted.
  virtual void expired(Slot slot, Timer timer, bool early) = 0;

  // --- Answers. After a verdict that wants information: call request() again for the same packet, with it in `offer`.
  virtual void request(Slot slot, const Headers& headers, std::uint32_t payload, const Offer& offer) = 0;
  virtual void settle_answers(Slot slot) = 0;  // after the work that a verdict or an answer asked for
  virtual void placed(Slot slot, AnswerId pending_answer, MemoryResult result) = 0;
  virtual void atomic_executed(Slot slot, AnswerId pending_answer, MemoryResult result, std::uint64_t original) = 0;
  virtual void invalidated(Slot slot, AnswerId pending_answer) = 0;
  // Payload bytes of the next answer; nullopt: no answer can be sent.
  virtual std::optional<std::uint32_t> next_answer(Slot slot) const = 0;
  virtual SentAnswer answer(Slot slot, Headers& headers) = 0;
  // The bytes of packet `psn` of a READ response could not be read, and `packets` packets are void: a NAK is sent
  // instead.
  virtual void answer_unreadable(Slot slot, Psn psn, MemoryResult result, std::uint32_t packets) = 0;

  virtual std::string describe(Slot slot) const = 0;  // for log messages
};

}  // namespace rnicsim::roce
