// SPDX-License-Identifier: Apache-2.0
// A completion queue with a non-blocking completion channel of its own.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <span>

namespace rnicsim::rsockets {

class CompletionQueue {
 public:
  CompletionQueue() = default;
  ~CompletionQueue();
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  // Returns 0 or a positive errno.
  int make(ibv_context* context, int entries);

  ibv_cq* get() const { return cq_; }
  // Readable while take_event() has an event to take.
  int fd() const { return channel_->fd; }

  // Requests one event at the next completion. Does nothing if an event is already requested. Returns 0 or an errno.
  int arm();
  // Takes an event, if there is one.
  void take_event();

  // Returns the number of completions, or a negative number on failure.
  int poll(std::span<ibv_wc> completions) { return ibv_poll_cq(cq_, int(completions.size()), completions.data()); }

 private:
  static constexpr unsigned kAcknowledgedAtOnce = 64;

  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* cq_ = nullptr;
  bool armed_ = false;
  unsigned unacknowledged_ = 0;
};

}  // namespace rnicsim::rsockets
