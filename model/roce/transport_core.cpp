// SPDX-License-Identifier: Apache-2.0
#include "model/roce/transport_core.h"

namespace rnicsim::roce {

void TransportCore::forget_all() {
  qps_.clear();
  free_.clear();
}

std::optional<Slot> TransportCore::open(Transport transport) {
  if (free_.empty()) {
    free_.push_back(static_cast<Slot>(qps_.size()));
    qps_.emplace_back();
  }
  const auto slot = free_.back();
  free_.pop_back();
  qps_[slot] = std::make_unique<Qp>(slot, *actions_, transport, sends_ahead_);
  return slot;
}

void TransportCore::close(Slot slot) {
  qps_[slot].reset();
  free_.push_back(slot);
}

void TransportCore::reset(Slot slot) {
  actions_->cancel(slot, Timer::ack);
  actions_->cancel(slot, Timer::rnr);
  qps_[slot] = std::make_unique<Qp>(slot, *actions_, of(slot).transport, sends_ahead_);
}

void TransportCore::fail(Slot slot) {
  of(slot).answers.fail();
  of(slot).sends.fail();
}

CoreState TransportCore::state(Slot slot) const {
  const auto& [transport, sends, answers] = of(slot);
  const auto& window = sends.window();
  return {.oldest_unanswered = window.oldest_psn(),
          .unsent = window.unsent_psn,
          .expected = answers.responder().expected_psn(),
          .msn = answers.responder().msn(),
          .retries_left = window.retries_left,
          .rnr_retries_left = window.rnr_retries_left,
          .drained = sends.drained()};
}

std::string TransportCore::describe(Slot slot) const {
  const auto now = state(slot);
  return "oldest psn " + std::to_string(now.oldest_unanswered.value()) + ", next psn " +
         std::to_string(now.unsent.value()) + "; expects psn " + std::to_string(now.expected.value()) +
         (of(slot).sends.rnr_waiting() ? ", waits for an RNR timer" : "");
}

}  // namespace rnicsim::roce
