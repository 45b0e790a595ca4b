// SPDX-License-Identifier: Apache-2.0
#include "model/roce/send_side.h"

#include <algorithm>
#include <utility>

namespace rnicsim::roce {

void SendSide::start(const SendAttributes& attributes, Psn first) {
  window_.start(attributes, first);
  left_psn_ = first;
  life_ = Life::active;
}

void SendSide::update(const SendAttributes& attributes, bool draining) {
  if (std::exchange(life_, Life::active) == Life::halted) window_.restart();
  const bool timeout_changed = attributes.timeout != window_.attributes.timeout;
  window_.update(attributes);
  if (draining && !window_.draining) drain_told_ = false;
  requester_.stop_starting(draining);
  // A message that waited for the end of the drain may be complete now, as may a READ without a resource.
  settle(false, timeout_changed);
}

void SendSide::halt() {
  life_ = Life::halted;
  rewound();
  flush();
}

void SendSide::fail() {
  life_ = Life::failed;
  keep_ack_timer(false);
  actions_.cancel(slot_, Timer::rnr);
  flush();
}

void SendSide::flush() {
  while (const auto done = completer_.take_flushed()) actions_.completed(slot_, done->id, Status::flushed_error, false);
}

std::size_t SendSide::post_room() const {
  const auto waiting = window_.messages.size() - window_.cursor;
  return ahead_ - std::min(waiting, ahead_);
}

void SendSide::post(const SendRequest& request) {
  window_.post(request);
  const auto& message = window_.messages.back();
  actions_.posted(slot_, request.id, message.first, message.packets);
  if (life_ == Life::halted || life_ == Life::failed) flush();
}

void SendSide::settle(bool placed_last, bool restart_timer) {
  if (life_ != Life::active) return;
  while (const auto done = completer_.take_completion()) {
    actions_.completed(slot_, done->id, done->status, std::exchange(placed_last, false));
    if (done->status != Status::success) return;
  }
  if (const auto work = requester_.take_local_work()) actions_.local_work(slot_, work->id);
  if (window_.draining && !drain_told_ && requester_.drained()) {
    drain_told_ = true;
    actions_.drained(slot_);
  }
  keep_ack_timer(restart_timer);
}

std::optional<std::uint64_t> SendSide::next() const {
  return life_ == Life::active ? requester_.next_message() : std::nullopt;
}

void SendSide::left(Psn end) {
  if (!window_.selective() || before(left_psn_, end)) left_psn_ = end;
  if (is_reliable(window_.attributes.transport)) return keep_ack_timer(false);
  completer_.left(end);
  settle();
}

void SendSide::unreadable(std::uint64_t message, Status status) {
  requester_.fail(message, status);
  // Packets after those bytes are void; resent packets may be among them.
  if (window_.selective()) window_.resends.lose_all(window_.oldest_psn(), window_.unsent_psn);
  settle();
}

void SendSide::response(const Headers& headers, std::uint32_t payload) {
  const auto outcome = completer_.receive(headers, payload);
  if (outcome.rewound) rewound();
  actions_.responded(slot_, outcome, window_.oldest_psn());
  if (outcome.kind == ResponseOutcome::Kind::rnr) actions_.arm(slot_, Timer::rnr, outcome.rnr_timer, false);
  const bool alive = outcome.kind == ResponseOutcome::Kind::progress || outcome.rewound ||
                     (window_.selective() && outcome.kind != ResponseOutcome::Kind::dropped);
  settle(false, alive);
}

void SendSide::placed(std::uint64_t message, Status status) {
  completer_.placed(message, status);
  settle(true);
}

void SendSide::local_work_done(std::uint64_t message, Status status) {
  requester_.local_work_done(message, status);
  settle();
}

void SendSide::expired(Timer timer, bool early) {
  if (life_ != Life::active) return;
  if (timer == Timer::rnr) return requester_.rnr_timeout();
  if (!std::exchange(ack_timer_, false)) return;
  const bool again = requester_.ack_timeout(early);
  if (again) rewound();
  actions_.ack_timed_out(slot_, again);
  settle(false, true);
}

// The timer starts when the request is on the wire: the time for an answer may be longer than the timeout, never
// shorter.
void SendSide::keep_ack_timer(bool restart) {
  const auto code = window_.attributes.timeout;
  const bool wanted = code != 0 && life_ == Life::active && !window_.rnr_waiting && requester_.awaits_answer() &&
                      before(window_.oldest_psn(), left_psn_);
  if (!wanted) {
    if (std::exchange(ack_timer_, false)) actions_.cancel(slot_, Timer::ack);
    return;
  }
  const auto in_flight = distance(window_.oldest_psn(), window_.unsent_psn);
  const bool few = static_cast<std::uint32_t>(in_flight) <= window_.attributes.recovery.few_in_flight;
  if (ack_timer_ && !restart && few == few_in_flight_) return;
  ack_timer_ = true;
  few_in_flight_ = few;
  actions_.arm(slot_, Timer::ack, code, few);
}

}  // namespace rnicsim::roce
