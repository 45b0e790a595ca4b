// A completion queue with a channel of its own that never blocks.
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

  // 0 or a positive errno.
  int make(ibv_context* context, int entries);

  ibv_cq* get() const { return cq_; }
  // Readable: there is an event to take.
  int fd() const { return channel_->fd; }

  // One event when the next completion comes; nothing if it is asked for already.
  int arm();
  // If there is one.
  void take_event();

  // How many, or a negative number.
  int poll(std::span<ibv_wc> completions) { return ibv_poll_cq(cq_, int(completions.size()), completions.data()); }

 private:
  static constexpr unsigned kAcknowledgedAtOnce = 64;

  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* cq_ = nullptr;
  bool armed_ = false;
  unsigned unacknowledged_ = 0;
};

}  // namespace rnicsim::rsockets
