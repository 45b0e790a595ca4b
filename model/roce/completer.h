// SPDX-License-Identifier: Apache-2.0
// The completer: handles the responder's answers and retires messages in order.
#pragma once

#include <cstdint>
#include <optional>

#include "model/roce/headers.h"
#include "model/roce/send_window.h"

namespace rnicsim::roce {

// Location of a response's payload in the message.
struct Placement {
  std::uint64_t message = 0;
  std::uint32_t offset = 0;
  std::optional<std::uint64_t> original;  // atomic: the payload is this number
};

struct ResponseOutcome {
  enum class Kind : std::uint8_t { dropped, duplicate, progress, sequence_error, implied_sequence_error, rnr, failed };
  Kind kind = Kind::dropped;
  bool rewound = false;  // packets that are not yet on the wire are void
  std::optional<Placement> placement;
  std::uint8_t rnr_timer = 0;  // Kind::rnr: code of the time until rnr_timeout()
};

struct Completion {
  std::uint64_t id = 0;  // SendRequest::id
  Status status = Status::success;
};

class Completer {
 public:
  explicit Completer(SendWindow& window) : window_(window) {}

  ResponseOutcome receive(const Headers& headers, std::uint32_t payload) {
    const auto outcome = validate(headers, payload);
    if (window_.reorders()) window_.pass_early();
    return outcome;
  }
  // UC and UD have no answers: messages on the wire, before `upto`, are complete.
  void left(Psn upto) { window_.acknowledge_before(upto); }
  // The payload of a response reached memory, or could not be written.
  void placed(std::uint64_t message, Status status);
  // Status of the oldest message if it is complete; else nullopt.
  std::optional<Status> oldest_done() const;
  // The next complete message, in order. After a completion with an error the queue pair is in error, and the rest is
  // flushed (take_flushed()).
  std::optional<Completion> take_completion();
  std::optional<Completion> take_flushed();

 private:
  using Kind = ResponseOutcome::Kind;

  ResponseOutcome validate(const Headers& headers, std::uint32_t payload);
  ResponseOutcome acknowledge(const Headers& headers);
  [[gnu::noinline]] ResponseOutcome negative(Psn psn, const Aeth& aeth);
  [[gnu::noinline]] bool answered_in_part(bool moved);
  [[gnu::noinline]] ResponseOutcome refused_ahead(Psn psn, std::uint8_t syndrome);
  [[gnu::noinline]] ResponseOutcome selective_nak(Psn missing, Psn arrived);
  [[gnu::noinline]] ResponseOutcome rnr(std::uint8_t timer);
  ResponseOutcome data_response(const Headers& headers, const OpcodeInfo& row, std::uint32_t payload);
  ResponseOutcome take_read(Message& message, const OpcodeInfo& row, std::uint32_t payload);
  ResponseOutcome take_atomic(Message& message, std::uint64_t original);
  [[gnu::noinline]] ResponseOutcome take_early(const Headers& headers, const OpcodeInfo& row, std::uint32_t payload);
  // Responses before `psn` are missing: the request of `psn` was acknowledged, or its response arrived.
  [[gnu::noinline]] ResponseOutcome response_missing(Psn psn);
  [[gnu::noinline]] ResponseOutcome lose(Psn first, Psn end);
  [[gnu::noinline]] ResponseOutcome response_lost();
  [[gnu::noinline]] ResponseOutcome go_back();
  [[gnu::noinline]] ResponseOutcome fail(Status status);
  Completion retire(Status status);

  SendWindow& window_;
};

}  // namespace rnicsim::roce
