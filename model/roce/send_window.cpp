// SPDX-License-Identifier: Apache-2.0
#include "model/roce/send_window.h"

#include <algorithm>
#include <utility>

namespace rnicsim::roce {

void SendWindow::start(const SendAttributes& given, Psn initial) {
  *this = {};
  next_psn = unsent_psn = initial;
  resends.start(initial);
  attributes = given;
  asks_every = given.recovery.asks_every();
  replenish();
}

void SendWindow::restart() {
  next_psn = unsent_psn;
  cursor = oldest = 0;
  resends.start(next_psn);
  refused.reset();
  replenish();
}

void SendWindow::update(const SendAttributes& given) {
  if (given.retry_count != attributes.retry_count) retries_left = given.retry_count;
  if (given.rnr_retry != attributes.rnr_retry) rnr_retries_left = given.rnr_retry;
  attributes = given;
  asks_every = given.recovery.asks_every();
}

bool SendWindow::replenish() {
  reads_again = 0;
  retries_left = attributes.retry_count;
  rnr_retries_left = attributes.rnr_retry;
  gap_known = false;
  return true;
}

void SendWindow::post(const SendRequest& request) {
  auto& message = messages.add_back();
  message = {};
  message.request = request;
  message.first = next_psn;
  message.error = request.refused;
  if (message.is_local() && !message.error) message.local = Message::Local::waiting;
  const bool silent = message.error || request.operation == SendOperation::nop || message.local != Message::Local::none;
  message.packets = silent ? 0 : packets_for(request.length, message.part(attributes.mtu));
  next_psn = next_psn + message.packets;
  pass_answered();
}

Message* SendWindow::find(std::uint64_t id) {
  if (messages.empty() || id < messages.front().request.id) return nullptr;
  const auto index = id - messages.front().request.id;
  return index < messages.size() ? &messages[index] : nullptr;
}

bool SendWindow::acknowledge_before(Psn upto) {
  bool moved = false;
  while (oldest != messages.size()) {
    auto& message = messages[oldest];
    const auto covered = distance(message.unanswered(), upto);
    if (covered <= 0 || message.is_rd_atomic()) break;
    const auto left = message.packets - message.acknowledged;
    if (attributes.recovery.mode == Recovery::go_back_0 && static_cast<std::uint32_t>(covered) < left) break;
    advance(message, std::min(static_cast<std::uint32_t>(covered), left));
    moved = true;
  }
  return moved;
}

void SendWindow::advance(Message& message, std::uint32_t packets) {
  message.acknowledged += packets;
  // A packet whose answer was only late need not be resent.
  message.sent = std::max(message.sent, message.acknowledged);
  if (!message.answered()) return;
  if (std::exchange(message.outstanding, false)) --rd_atomic_outstanding;
  pass_answered();
}

void SendWindow::pass_early() {
  while (oldest != messages.size()) {
    auto& message = messages[oldest];
    const auto psn = message.unanswered();
    const bool answered = message.is_rd_atomic() ? resends.has_arrived(psn) : before(psn, resends.acknowledged());
    if (!answered) break;
    advance(message, 1);
  }
  if (refused && oldest_psn() == refused->psn) fail_oldest(refused->status);
  resends.move_to(oldest_psn());
}

Message* SendWindow::message_at(Psn psn) {
  for (auto at = oldest; at != messages.size(); ++at) {
    auto& message = messages[at];
    const auto index = message.index_of(psn);
    if (index < 0) return nullptr;
    if (index < message.packets) return &message;
  }
  return nullptr;
}

void SendWindow::rewind() {
  resends.cease(oldest_psn());
  rd_atomic_outstanding = 0;
  const bool whole = attributes.recovery.mode == Recovery::go_back_0;
  for (std::size_t i = oldest; i < messages.size(); ++i) {
    if (whole) messages[i].acknowledged = 0;
    messages[i].sent = messages[i].acknowledged;
    messages[i].outstanding = false;
  }
  cursor = std::min(cursor, oldest);
}

void SendWindow::fail_oldest(Status status) {
  if (oldest != messages.size()) messages[oldest].error = status;
}

void SendWindow::retire_front() {
  messages.pop_front();
  if (cursor > 0) --cursor;
  oldest > 0 ? void(--oldest) : pass_answered();
}

}  // namespace rnicsim::roce
