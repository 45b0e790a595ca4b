// SPDX-License-Identifier: Apache-2.0
// The requester: divides messages into request packets. The caller decides when it asks for the next packet.
#pragma once

#include <cstdint>
#include <optional>

#include "model/roce/headers.h"
#include "model/roce/send_window.h"

namespace rnicsim::roce {

// A request packet without its headers.
struct SentRequest {
  Operation operation{};
  bool begins = true;         // first packet of the message
  bool again = false;         // a retransmission of this packet alone
  std::uint64_t message = 0;  // SendRequest::id
  std::uint32_t offset = 0;   // offset of the payload within the message
  std::uint32_t payload = 0;
  Psn end;  // one past the last PSN of the packet (READ: of its response)
};

struct RequestPacket : SentRequest {
  Headers headers;
};

class Requester {
 public:
  explicit Requester(SendWindow& window) : window_(window) {}

  bool can_send() const { return next_message().has_value(); }
  std::optional<std::uint64_t> next_message() const;  // SendRequest::id of the message of next_packet()
  std::optional<RequestPacket> next_packet();
  // Writes the headers of the next packet; next_message() must not be nullopt.
  SentRequest send(Headers& headers);
  // The message cannot be sent, as when its data could not be read: earlier messages continue, later ones are not sent.
  void fail(std::uint64_t message, Status status);

  // --- Timers; the caller runs them. ack_timeout(): true: packets must be resent.
  bool awaits_answer() const;
  bool ack_timeout(bool early);  // early: before the timeout, so no retry is counted
  void rnr_timeout() { window_.rnr_waiting = false; }

  // --- Local operations, in order: each when all earlier messages are complete. The caller executes them.
  std::optional<SendRequest> take_local_work();
  void local_work_done(std::uint64_t message, Status status);

  // Stops before the next message (drain).
  void stop_starting(bool stop) { window_.draining = stop; }
  bool drained() const;

 private:
  bool may_start(const Message& message) const;
  bool may_send_more(const Message& message) const;
  // Not with an immediate: the receiver's completion has the length of the whole message, which a WRITE per packet
  // lacks.
  bool carries_reth_in_each(const SendRequest& request) const {
    return window_.attributes.recovery.reth_in_each && !request.immediate;
  }
  void skip_sent();
  [[gnu::noinline]] bool sends_again() const;
  void address(const Message& message, SentRequest& sent, Headers& headers) const;
  SentRequest send_next(Headers& headers);
  [[gnu::noinline]] SentRequest send_again(Headers& headers);
  // A request for `packets` packets of the response, from index `from` on.
  SentRequest response_request(const Message& message, std::uint32_t from, std::uint32_t packets,
                               Headers& headers) const;
  SentRequest data_packet(const Message& message, std::uint32_t index, Headers& headers) const;

  SendWindow& window_;
};

}  // namespace rnicsim::roce
