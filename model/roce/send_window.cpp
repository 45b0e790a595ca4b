#include "model/roce/send_window.h"

#include <algorithm>

namespace rnicsim::roce {

void SendWindow::start(const SendAttributes& given, Psn initial) {
  *this = {};
  next_psn = initial;
  update(given);
}

void SendWindow::update(const SendAttributes& given) {
  attributes = given;
  replenish();
}

bool SendWindow::replenish() {
  retries_left = attributes.retry_count;
  rnr_retries_left = attributes.rnr_retry;
  gap_known = false;
  return true;
}

void SendWindow::post(const SendRequest& request) {
  Message message{.request = request, .first = next_psn, .error = request.refused};
  const bool silent = request.refused || request.operation == SendOperation::nop;
  message.packets = silent ? 0 : packets_for(request.length, attributes.mtu);
  next_psn = next_psn + message.packets;
  messages.push_back(message);
}

Message* SendWindow::find(std::uint64_t id) {
  if (messages.empty() || id < messages.front().request.id) return nullptr;
  const auto index = id - messages.front().request.id;
  return index < messages.size() ? &messages[index] : nullptr;
}

Message* SendWindow::oldest_unanswered() {
  for (auto& message : messages) {
    if (message.sent == 0 && message.packets != 0) return nullptr;
    if (!message.answered()) return message.sent > message.acknowledged ? &message : nullptr;
  }
  return nullptr;
}

bool SendWindow::acknowledge_before(Psn upto) {
  bool moved = false;
  for (auto& message : messages) {
    const auto covered = distance(message.first, upto);
    if (covered <= 0) break;
    if (message.is_read() && !message.answered()) break;
    const auto answered = std::min({static_cast<std::uint32_t>(covered), message.packets});
    if (answered <= message.acknowledged) continue;
    message.acknowledged = answered;
    moved = true;
  }
  return moved;
}

void SendWindow::rewind() {
  reads_in_flight = 0;
  std::size_t first = 0;
  while (first < messages.size() && messages[first].answered()) ++first;
  for (std::size_t i = first; i < messages.size(); ++i) messages[i].sent = messages[i].acknowledged;
  cursor = std::min(cursor, first);
}

void SendWindow::fail_oldest(Status status) {
  for (auto& message : messages)
    if (!message.answered()) {
      message.error = status;
      return;
    }
}

Psn SendWindow::oldest_psn() const {
  for (const auto& message : messages)
    if (!message.answered()) return message.first + message.acknowledged;
  return next_psn;
}

Psn SendWindow::sent_psn() const {
  if (cursor >= messages.size()) return next_psn;
  return messages[cursor].first + messages[cursor].sent;
}

}  // namespace rnicsim::roce
