// The seam between a queue pair's transport and the shell that has its rings, memory and time
// (model/nic/engine/engine_shell.h). Events go in, actions come out. A core has no clock, no memory and no payload;
// what an implementation is free to choose (whose turn it is, that a timer fired) comes from outside.
//
// A core acts within the call of an event, or later, between CoreActions::begin_step() and end_step(). Of one queue
// pair, actions come in the order of the events that brought them.
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

using Slot = std::uint32_t;              // of a queue pair in its core

enum class MemoryResult : std::uint8_t {
  ok,
  refused,                               // the key does not grant it
  unreachable
};

enum class Timer : std::uint8_t { ack, rnr };

// The answer whose turn it is.
struct SentAnswer {
  bool is_read = false;                  // a packet of a READ's response, with the bytes of `range`
  bool begins = true;
  bool fatal = false;                    // a NAK behind which the queue pair is in error
  RemoteRange range;
  std::uint32_t domain = 0;              // XRC: of its key
};

// What no core keeps to itself: the contents of a context.
struct CoreState {
  Psn oldest_unanswered;
  Psn unsent;                            // one past the last ever sent
  Psn expected;
  std::uint32_t msn = 0;
  std::uint8_t retries_left = 0;
  std::uint8_t rnr_retries_left = 0;
  bool drained = false;
  bool idle = true;                      // owes nothing, so that no action comes without an event
};

// Payload of a request, or its atomic, could not be had in memory. Connected reliably: a NAK is owed for it.
struct PlacementFailure {
  OwedId owed = 0;
  bool to_receive = false;               // it belonged to a receive WQE
  bool completes_receive = false;
  bool refused = false;                  // it was the requester's key
};

class CoreActions {
 public:
  virtual void begin_step() = 0;
  virtual void end_step() = 0;
  // Outside of any event's call: something may be sent that could not before; `answers`: or judged, that was not.
  virtual void moved(Slot slot, bool answers) = 0;

  // --- Sends.
  virtual void posted(Slot slot, std::uint64_t message, Psn first, std::uint32_t packets) = 0;
  // To the oldest response packet that was not told of yet. `rewound`: requests that have not left are void.
  virtual void responded(Slot slot, const ResponseOutcome& outcome, Psn oldest) = 0;
  virtual void ack_timed_out(Slot slot, bool rewound) = 0;
  // The oldest message; behind one with an error nothing is sent, and the shell halts or fails the queue pair.
  // `placed_last`: the payload of its answer has just come to memory.
  virtual void completed(Slot slot, std::uint64_t message, Status status, bool placed_last) = 0;
  virtual void local_work(Slot slot, std::uint64_t message) = 0;
  virtual void drained(Slot slot) = 0;
  // In so long as the code says (IBTA vol 1: the ACK timeout, the RNR timer). Cores with timers of their own never ask.
  // `few`: no more packets are in flight than LossRecovery::few_in_flight.
  virtual void arm(Slot slot, Timer timer, std::uint8_t code, bool few) = 0;
  virtual void cancel(Slot slot, Timer timer) = 0;

  // --- Answers.
  // Whether what a verdict wants to access may be, when that is known at once; nullopt: judged() comes with it.
  virtual std::optional<bool> granted(Slot slot, const Verdict& wanted) = 0;
  virtual void judged(Slot slot, const Verdict& verdict) = 0;
  // The atomic of the request of that PSN; XRC: whose key is of that domain.
  virtual void carry_out(Slot slot, OwedId owed, Psn psn, const AtomicEth& operation, bool is_swap,
                         std::uint32_t domain) = 0;
  virtual void invalidate(Slot slot, OwedId owed, Rkey key) = 0;
  // The message that ended with what is owed there is in memory, and so is all before it.
  virtual void receive_completed(Slot slot, OwedId owed) = 0;
  virtual void placement_failed(Slot slot, const PlacementFailure& failure) = 0;

  virtual void told(Slot slot, const CoreState& state) = 0;  // answers query()

 protected:
  ~CoreActions() = default;
};

class QpCore {
 public:
  virtual ~QpCore() = default;
  virtual void bind(CoreActions& actions) = 0;
  virtual void forget_all() = 0;

  // --- A queue pair's life. nullopt: no room.
  virtual std::optional<Slot> open(Transport transport) = 0;
  virtual void close(Slot slot) = 0;
  virtual void reset(Slot slot) = 0;
  virtual void start_answers(Slot slot, const ResponderAttributes& attributes, Psn expected) = 0;
  virtual void update_answers(Slot slot, const ResponderAttributes& attributes) = 0;
  virtual void start_sends(Slot slot, const SendAttributes& attributes, Psn first) = 0;
  // Also out of a halt.
  virtual void update_sends(Slot slot, const SendAttributes& attributes, bool draining) = 0;
  virtual void halt_sends(Slot slot) = 0;  // flushes them; the answers go on
  virtual void fail(Slot slot) = 0;        // flushes the sends, forgets the answers
  virtual void query(Slot slot) = 0;
  virtual bool in_use(Slot slot) const = 0;  // an action may come of what is under way in the core

  // --- Sends. A message's id counts up by one a post.
  virtual std::size_t post_room(Slot slot) const = 0;  // so many more it keeps until their turn comes
  virtual void post(Slot slot, const SendRequest& request) = 0;
  virtual void settle_sends(Slot slot) = 0;  // behind posts
  // The message that the next request packet is of; nullopt: none can be sent.
  virtual std::optional<std::uint64_t> next_send(Slot slot) = 0;
  virtual bool sends_again(Slot) const { return false; }  // the next request packet is one that was lost
  virtual SentRequest send(Slot slot, Headers& headers) = 0;
  virtual void left(Slot slot, bool is_request, Psn end) = 0;  // a packet is on the wire
  virtual void dropped_requests(Slot slot, std::uint32_t packets) = 0;  // void, never on the wire
  // Bytes of the message could not be read; so many packets are void.
  virtual void unreadable(Slot slot, std::uint64_t message, Status status, std::uint32_t packets) = 0;
  virtual void response(Slot slot, const Headers& headers, std::uint32_t payload) = 0;
  virtual void response_placed(Slot slot, std::uint64_t message, Status status) = 0;
  virtual void local_work_done(Slot slot, std::uint64_t message, Status status) = 0;
  // `early`: sooner than was asked for, so it is no retry.
  virtual void expired(Slot slot, Timer timer, bool early) = 0;

  // --- Answers. Verdicts that want to know something: the same request once more, with that in the offer.
  virtual void request(Slot slot, const Headers& headers, std::uint32_t payload, const Offer& offer) = 0;
  virtual void settle_answers(Slot slot) = 0;  // behind what a verdict or an answer asked for
  virtual void placed(Slot slot, OwedId owed, MemoryResult result) = 0;
  virtual void carried_out(Slot slot, OwedId owed, MemoryResult result, std::uint64_t original) = 0;
  virtual void invalidated(Slot slot, OwedId owed) = 0;
  // Bytes of payload of the next answer; nullopt: none can be sent.
  virtual std::optional<std::uint32_t> next_answer(Slot slot) const = 0;
  virtual SentAnswer answer(Slot slot, Headers& headers) = 0;
  // The bytes for that packet of a READ could not be had, and so many packets are void: a NAK takes their place.
  virtual void answer_unreadable(Slot slot, Psn psn, MemoryResult result, std::uint32_t packets) = 0;

  virtual std::string describe(Slot slot) const = 0;  // for people
};

}  // namespace rnicsim::roce
