// The send queue as the transport sees it: messages in order, each with its range of PSNs. Requester sends from it,
// completer retires from it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "model/roce/types.h"

namespace rnicsim::roce {

enum class SendOperation : std::uint8_t { nop, send, write, read };

struct SendRequest {
  std::uint64_t id = 0;                  // the caller's; counts up by one a request
  SendOperation operation = SendOperation::nop;
  std::uint32_t length = 0;
  std::uint64_t remote_address = 0;
  Rkey rkey;
  std::optional<std::uint32_t> immediate;
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
  std::uint32_t placing = 0;             // packets of a READ's response on their way to memory
  std::optional<Status> error;

  bool is_read() const { return request.operation == SendOperation::read; }
  bool answered() const { return acknowledged == packets; }
};

struct SendAttributes {
  Qpn remote;
  std::uint32_t mtu = 1024;
  std::uint8_t max_rd_atomic = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry = 0;            // 7: for ever
};

struct SendWindow {
  static constexpr std::uint8_t kRetryForever = 7;

  SendAttributes attributes;
  std::deque<Message> messages;
  std::size_t cursor = 0;                // of the message to send from next
  Psn next_psn;                          // of the next message posted
  std::uint32_t reads_in_flight = 0;
  std::uint8_t retries_left = 0;
  std::uint8_t rnr_retries_left = 0;
  bool rnr_waiting = false;
  bool gap_known = false;                // a lost response was asked for again: what is in flight behind it is old

  void start(const SendAttributes& given, Psn initial);
  void update(const SendAttributes& given);
  void post(const SendRequest& request);
  // The oldest message that the responder has not answered for whole; nullptr: none that is on its way.
  Message* oldest_unanswered();
  Message* find(std::uint64_t id);
  // Marks [.., upto) as answered; READs are answered by their responses only. True when something moved.
  bool acknowledge_before(Psn upto);
  // Sends again from the first PSN not answered.
  void rewind();
  void fail_oldest(Status status);
  bool replenish();                      // progress was made: retries start anew
  Psn oldest_psn() const;                // of the first PSN not answered
  Psn sent_psn() const;                  // of the first PSN never sent
};

}  // namespace rnicsim::roce
