// The requester: cuts messages into request packets. When it is asked for the next packet is the caller's choice.
#pragma once

#include <cstdint>
#include <optional>

#include "model/roce/headers.h"
#include "model/roce/send_window.h"

namespace rnicsim::roce {

// A request packet but for its headers.
struct SentRequest {
  Operation operation{};
  bool begins = true;            // its message
  bool again = false;            // sent once more, alone
  std::uint64_t message = 0;     // SendRequest::id
  std::uint32_t offset = 0;      // of the payload in the message
  std::uint32_t payload = 0;
  Psn end;                       // one past the PSNs that it stands for
};

struct RequestPacket : SentRequest {
  Headers headers;
};

class Requester {
 public:
  explicit Requester(SendWindow& window) : window_(window) {}

  bool can_send() const { return next_message().has_value(); }
  std::optional<std::uint64_t> next_message() const;  // SendRequest::id of the one that next_packet() is of
  std::optional<RequestPacket> next_packet();
  // Of next_message(), which says that there is one.
  SentRequest send(Headers& headers);
  // The message's data could not be read, or the like: what is before it goes on, nothing after it is sent.
  void fail(std::uint64_t message, Status status);

  // --- Timers, which the caller keeps. True when packets are to be sent again.
  bool awaits_answer() const;
  bool ack_timeout(bool early);          // early: before the timeout is over, and no retry is counted
  void rnr_timeout() { window_.rnr_waiting = false; }

  // --- Local operations, in their turn: when all before them is complete. The caller does them.
  std::optional<SendRequest> take_local_work();
  void local_work_done(std::uint64_t message, Status status);

  // A drained send queue stops before the next message.
  void stop_starting(bool stop) { window_.draining = stop; }
  bool drained() const;

 private:
  bool may_start(const Message& message) const;
  bool may_send_more(const Message& message) const;
  // Not with an immediate: the receiver's completion has the length of the message, which it would not know.
  bool carries_reth_in_each(const SendRequest& request) const {
    return window_.attributes.recovery.reth_in_each && !request.immediate;
  }
  void skip_sent();
  [[gnu::noinline]] bool sends_again() const;
  void address(const Message& message, SentRequest& sent, Headers& headers) const;
  SentRequest send_next(Headers& headers);
  [[gnu::noinline]] SentRequest send_again(Headers& headers);
  // For `packets` packets of the response, from the one of index `from` on.
  SentRequest response_request(const Message& message, std::uint32_t from, std::uint32_t packets,
                               Headers& headers) const;
  SentRequest data_packet(const Message& message, std::uint32_t index, Headers& headers) const;

  SendWindow& window_;
};

}  // namespace rnicsim::roce
