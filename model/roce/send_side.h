// SPDX-License-Identifier: Apache-2.0
// The sends of one queue pair: window, ACK timer, order of completions, flush and drain.
#pragma once

#include <cstdint>
#include <optional>

#include "model/roce/completer.h"
#include "model/roce/qp_core.h"
#include "model/roce/requester.h"

namespace rnicsim::roce {

class SendSide {
 public:
  // `ahead`: messages that the core stores until their turn.
  SendSide(Slot slot, CoreActions& actions, std::size_t ahead) : slot_(slot), actions_(actions), ahead_(ahead) {}
  SendSide(const SendSide&) = delete;
  SendSide& operator=(const SendSide&) = delete;

  void start(const SendAttributes& attributes, Psn first);
  void update(const SendAttributes& attributes, bool draining);
  void halt();
  void fail();

  std::size_t post_room() const;
  void post(const SendRequest& request);
  void settle(bool placed_last = false, bool restart_timer = false);
  std::optional<std::uint64_t> next() const;
  SentRequest send(Headers& headers) { return requester_.send(headers); }
  void left(Psn end);
  void unreadable(std::uint64_t message, Status status);
  void response(const Headers& headers, std::uint32_t payload);
  void placed(std::uint64_t message, Status status);
  void local_work_done(std::uint64_t message, Status status);
  void expired(Timer timer, bool early = false);

  const SendWindow& window() const { return window_; }
  bool sends_again() const { return window_.resends.pending(); }
  bool drained() const { return requester_.drained(); }
  bool rnr_waiting() const { return window_.rnr_waiting; }

 private:
  enum class Life : std::uint8_t { idle, active, halted, failed };

  void flush();
  void rewound() { left_psn_ = window_.oldest_psn(); }
  void keep_ack_timer(bool restart);

  const Slot slot_;
  CoreActions& actions_;
  const std::size_t ahead_;
  SendWindow window_;
  Requester requester_{window_};
  Completer completer_{window_};
  Life life_ = Life::idle;
  bool ack_timer_ = false;
  bool few_in_flight_ = false;  // value when the timer was started
  bool drain_told_ = false;
  Psn left_psn_;  // one past the last request on the wire since the last rewind
};

}  // namespace rnicsim::roce
