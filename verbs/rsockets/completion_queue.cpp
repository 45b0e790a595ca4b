// SPDX-License-Identifier: Apache-2.0
#include "verbs/rsockets/completion_queue.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

namespace rnicsim::rsockets {

CompletionQueue::~CompletionQueue() {
  if (cq_ != nullptr) {
    if (unacknowledged_ != 0) ibv_ack_cq_events(cq_, unacknowledged_);
    ibv_destroy_cq(cq_);
  }
  if (channel_ != nullptr) ibv_destroy_comp_channel(channel_);
}

int CompletionQueue::make(ibv_context* context, int entries) {
  channel_ = ibv_create_comp_channel(context);
  if (channel_ == nullptr) return errno;
  if (::fcntl(channel_->fd, F_SETFL, O_NONBLOCK) != 0) return errno;
  cq_ = ibv_create_cq(context, entries, nullptr, channel_, 0);
  return cq_ == nullptr ? errno : 0;
}

int CompletionQueue::arm() {
  if (armed_) return 0;
  if (const int error = ibv_req_notify_cq(cq_, 0)) return error;
  armed_ = true;
  return 0;
}

void CompletionQueue::take_event() {
  ibv_cq* cq;
  void* context;
  if (ibv_get_cq_event(channel_, &cq, &context) != 0) return;
  armed_ = false;
  if (++unacknowledged_ == kAcknowledgedAtOnce) ibv_ack_cq_events(cq_, std::exchange(unacknowledged_, 0u));
}

}  // namespace rnicsim::rsockets
