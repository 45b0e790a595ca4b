// SPDX-License-Identifier: Apache-2.0
// The transport's view of the send queue: messages in order, each with its range of PSNs. The requester sends from it,
// the completer retires from it.
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
  change_key  // bind of a window, or fast registration
};

struct SendRequest {
  std::uint64_t id = 0;  // chosen by the caller; one more than that of the request before
  SendOperation operation = SendOperation::nop;
  std::uint32_t length = 0;
  std::uint32_t segment = 0;  // raw: payload bytes of each frame; 0: one frame
  std::uint64_t remote_address = 0;
  Rkey rkey;
  std::uint64_t swap_add = 0;  // atomics
  std::uint64_t compare = 0;
  std::optional<std::uint32_t> immediate;
  Qpn remote;                      // UD
  std::uint32_t qkey = 0;          // UD
  std::uint32_t srqn = 0;          // XRC
  std::optional<Rkey> invalidate;  // key to invalidate: at the responder with the message; local_invalidate: here
  bool signaled = false;
  bool solicited = false;
  bool fence = false;
  std::optional<Status> refused;  // malformed request: completes with this status at its turn
};

struct Message {
  SendRequest request;
  Psn first;
  std::uint32_t packets = 0;       // PSNs taken; a READ takes one for each packet of its response
  std::uint32_t sent = 0;          // PSNs sent; the request of a READ counts for all its PSNs
  std::uint32_t acknowledged = 0;  // PSNs that the responder has answered
  std::uint32_t asked_from = 0;    // READ: first packet of its last request
  std::uint32_t placing = 0;       // packets of a response on their way to memory
  bool started = false;            // a packet was sent once (and may be resent), or the local work was started
  bool outstanding = false;        // counts in SendWindow::rd_atomic_outstanding
  enum class Local : std::uint8_t { none, waiting, running } local = Local::none;  // work inside the device
  std::optional<Status> error;

  // The message sends no packet.
  bool is_local() const {
    return request.operation == SendOperation::local_invalidate || request.operation == SendOperation::change_key;
  }
  // Largest payload of a packet of this message.
  std::uint32_t part(std::uint32_t mtu) const { return request.segment != 0 ? request.segment : mtu; }
  bool is_read() const { return request.operation == SendOperation::read; }
  bool is_atomic() const {
    return request.operation == SendOperation::fetch_add || request.operation == SendOperation::compare_swap;
  }
  // Answered by the response of an empty READ.
  bool is_atomic_write() const { return request.operation == SendOperation::atomic_write; }
  // Answered by a response only, not by an acknowledgement.
  bool is_rd_atomic() const { return is_read() || is_atomic() || is_atomic_write(); }
  std::uint32_t response_bytes() const { return is_read() ? request.length : 0; }
  bool answered() const { return acknowledged == packets; }
  // All PSNs in flight lie within half of the PSN space after this PSN, but not after `first`.
  Psn unanswered() const { return first + acknowledged; }
  // Index of the packet with this PSN, which is in flight.
  std::int64_t index_of(Psn psn) const { return std::int64_t{acknowledged} + distance(unanswered(), psn); }
  bool data_complete() const { return answered() && placing == 0; }
};

struct SendAttributes {
  Transport transport = Transport::rc;
  Qpn local;
  Qpn remote;  // for a connected queue pair
  std::uint32_t mtu = 1024;
  std::uint8_t max_rd_atomic = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry = 0;  // 7: no limit
  std::uint8_t timeout = 0;    // code of the ACK timeout; 0: no timeout
  LossRecovery recovery;
};

struct SendWindow {
  static constexpr std::uint8_t kRetryForever = 7;
  // Limit of PSNs in flight: old and new packets must stay distinguishable (IBTA vol 1, 9.7.2).
  static constexpr std::uint32_t kMostPsns = 1u << 23;

  SendAttributes attributes;
  Fifo<Message> messages;
  std::size_t cursor = 0;  // index of the next message to send
  std::size_t oldest = 0;  // index of the first unanswered message; messages.size(): none
  Psn next_psn;            // first PSN of the next posted message
  Psn unsent_psn;          // one past the last PSN ever sent
  std::uint32_t rd_atomic_outstanding = 0;
  std::uint8_t retries_left = 0;
  std::uint8_t rnr_retries_left = 0;
  bool rnr_waiting = false;
  bool gap_known = false;        // a lost response was requested again: responses in flight are out of date
  bool draining = false;         // messages that have not begun wait: not sent, not completed
  std::uint32_t asks_every = 1;  // packets between acknowledgement requests of a message
  Resends resends;
  struct Refused {
    Psn psn;
    Status status;
  };
  std::optional<Refused> refused;  // refused request: its NAK overtook responses to earlier requests
  std::uint32_t reads_again = 0;   // READs requested again in part since the last progress

  void start(const SendAttributes& given, Psn initial);
  void update(const SendAttributes& given);  // changed retry counts take effect at once
  void post(const SendRequest& request);
  // All messages were flushed: PSNs continue after the last one sent.
  void restart();
  // The oldest message, of which a packet was sent, that is not wholly answered.
  Message* oldest_unanswered() {
    if (oldest == messages.size()) return nullptr;
    auto& message = messages[oldest];
    return before(message.unanswered(), unsent_psn) ? &message : nullptr;
  }
  Message* find(std::uint64_t id);
  // For messages without packets: true if a later message was sent.
  bool begun(const Message& message) const {
    return message.started || (message.packets == 0 && before(message.first, unsent_psn));
  }
  // Marks PSNs before `upto` as answered, except READs and atomics, which their responses answer. True: the window
  // moved.
  bool acknowledge_before(Psn upto);
  // Counts `packets` more packets of the message as answered.
  void advance(Message& message, std::uint32_t packets);
  // True: packets may arrive in another order than they were sent.
  bool reorders() const { return attributes.recovery.reorder_window != 0; }
  bool selective() const { return attributes.recovery.mode == Recovery::selective; }
  // Advances over packets that were answered out of order.
  void pass_early();
  // The message with this PSN, from the oldest unanswered on; nullptr: none.
  Message* message_at(Psn psn);
  // Resends from the first unanswered PSN on.
  void rewind();
  void fail_oldest(Status status);
  void retire_front();
  bool replenish();  // after progress: resets the retry counts
  // The first unanswered PSN.
  Psn oldest_psn() const { return oldest != messages.size() ? messages[oldest].unanswered() : next_psn; }

 private:
  void pass_answered() {
    while (oldest != messages.size() && messages[oldest].answered()) ++oldest;
  }
};

}  // namespace rnicsim::roce
