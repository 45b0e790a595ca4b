// The send queue as the transport sees it: messages in order, each with its range of PSNs. Requester sends from it,
// completer retires from it.
#pragma once

#include <cstdint>
#include <optional>

#include "model/base/fifo.h"
#include "model/roce/loss_recovery.h"
#include "model/roce/resends.h"
#include "model/roce/types.h"

namespace rnicsim::roce {

enum class SendOperation : std::uint8_t {
  nop,
  send,
  write,
  read,
  fetch_add,
  compare_swap,
  atomic_write,
  local_invalidate,
  change_key                             // a bind of a window, or a fast registration
};

struct SendRequest {
  std::uint64_t id = 0;                  // the caller's; counts up by one a request
  SendOperation operation = SendOperation::nop;
  std::uint32_t length = 0;
  std::uint32_t segment = 0;             // raw: bytes of it that a frame brings; 0: it is one
  std::uint64_t remote_address = 0;
  Rkey rkey;
  std::uint64_t swap_add = 0;            // atomics
  std::uint64_t compare = 0;
  std::optional<std::uint32_t> immediate;
  Qpn remote;                            // UD
  std::uint32_t qkey = 0;                // UD
  std::uint32_t srqn = 0;                // XRC
  std::optional<Rkey> invalidate;        // at the responder with the message; local_invalidate: here
  bool signaled = false;
  bool solicited = false;
  bool fence = false;
  std::optional<Status> refused;         // the request was malformed: it completes with this when its turn comes
};

struct Message {
  SendRequest request;
  Psn first;
  std::uint32_t packets = 0;             // PSNs taken; a READ takes one for each packet of its response
  std::uint32_t sent = 0;                // PSNs on their way; a READ's request stands for all of them
  std::uint32_t acknowledged = 0;        // PSNs the responder has answered for
  std::uint32_t asked_from = 0;          // of a READ: where the last of its requests begins
  std::uint32_t placing = 0;             // packets of a response on their way to memory
  bool started = false;                  // a packet of it was sent once, though it may have to be sent again; or its
                                         // local work was
  bool outstanding = false;              // counts in SendWindow::rd_atomic_outstanding
  enum class Local : std::uint8_t { none, waiting, running } local = Local::none;  // work of the device's own
  std::optional<Status> error;

  // No packet comes of it.
  bool is_local() const {
    return request.operation == SendOperation::local_invalidate || request.operation == SendOperation::change_key;
  }
  // Bytes that a packet of it brings at most.
  std::uint32_t part(std::uint32_t mtu) const { return request.segment != 0 ? request.segment : mtu; }
  bool is_read() const { return request.operation == SendOperation::read; }
  bool is_atomic() const {
    return request.operation == SendOperation::fetch_add || request.operation == SendOperation::compare_swap;
  }
  // Answered by the response of an empty READ.
  bool is_atomic_write() const { return request.operation == SendOperation::atomic_write; }
  // Only a response answers for it, no acknowledgement.
  bool is_rd_atomic() const { return is_read() || is_atomic() || is_atomic_write(); }
  std::uint32_t response_bytes() const { return is_read() ? request.length : 0; }
  bool answered() const { return acknowledged == packets; }
  // What is in flight lies within half the circle from here, but not from `first`.
  Psn unanswered() const { return first + acknowledged; }
  // Which of its packets has that PSN, of one in flight.
  std::int64_t index_of(Psn psn) const { return std::int64_t{acknowledged} + distance(unanswered(), psn); }
  bool data_complete() const { return answered() && placing == 0; }
};

struct SendAttributes {
  Transport transport = Transport::rc;
  Qpn local;
  Qpn remote;                            // of a connected queue pair
  std::uint32_t mtu = 1024;
  std::uint8_t max_rd_atomic = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry = 0;            // 7: for ever
  std::uint8_t timeout = 0;              // code of the ACK timeout; 0: none
  LossRecovery recovery;
};

struct SendWindow {
  static constexpr std::uint8_t kRetryForever = 7;
  // PSNs in flight: more could not be told from old ones (IBTA vol 1, 9.7.2).
  static constexpr std::uint32_t kMostPsns = 1u << 23;

  SendAttributes attributes;
  Fifo<Message> messages;
  std::size_t cursor = 0;                // of the message to send from next
  std::size_t oldest = 0;                // of the first that is not answered; as many as there are: none
  Psn next_psn;                          // of the next message posted
  Psn unsent_psn;                        // one past the last that was ever sent
  std::uint32_t rd_atomic_outstanding = 0;
  std::uint8_t retries_left = 0;
  std::uint8_t rnr_retries_left = 0;
  bool rnr_waiting = false;
  bool gap_known = false;                // a lost response was asked for again: what is in flight behind it is old
  bool draining = false;                 // what has not begun waits: it is not sent, and not judged
  std::uint32_t asks_every = 1;          // packets of a message: one of them asks for an acknowledgement
  Resends resends;
  struct Refused {
    Psn psn;
    Status status;
  };
  std::optional<Refused> refused;        // of a request, by a NAK that overtook responses to earlier ones
  std::uint32_t reads_again = 0;         // READs asked for again, in part, since anything was answered

  void start(const SendAttributes& given, Psn initial);
  void update(const SendAttributes& given);  // counts of retries that are new begin at once
  void post(const SendRequest& request);
  // All messages were flushed: PSNs go on behind the last that was sent.
  void restart();
  // The oldest message, ever sent, that the responder has not answered for whole.
  Message* oldest_unanswered() {
    if (oldest == messages.size()) return nullptr;
    auto& message = messages[oldest];
    return before(message.unanswered(), unsent_psn) ? &message : nullptr;
  }
  Message* find(std::uint64_t id);
  // Of a message without packets: something behind it was sent.
  bool begun(const Message& message) const {
    return message.started || (message.packets == 0 && before(message.first, unsent_psn));
  }
  // Marks [.., upto) as answered; READs and atomics are answered by their responses only. True when something moved.
  bool acknowledge_before(Psn upto);
  // `packets` more of it were answered.
  void advance(Message& message, std::uint32_t packets);
  // Packets may arrive in another order than they were sent.
  bool reorders() const { return attributes.recovery.reorder_window != 0; }
  bool selective() const { return attributes.recovery.mode == Recovery::selective; }
  // Advances over what was answered before its turn came.
  void pass_early();
  // The message that has the PSN, of those from the oldest unanswered on; nullptr: none.
  Message* message_at(Psn psn);
  // Sends again from the first PSN not answered.
  void rewind();
  void fail_oldest(Status status);
  void retire_front();
  bool replenish();                      // progress was made: retries start anew
  // Of the first PSN not answered.
  Psn oldest_psn() const { return oldest != messages.size() ? messages[oldest].unanswered() : next_psn; }

 private:
  void pass_answered() {
    while (oldest != messages.size() && messages[oldest].answered()) ++oldest;
  }
};

}  // namespace rnicsim::roce
