// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/progress.h"

#include <algorithm>

namespace rnicsim::sim::replay {
namespace {

using roce::Aeth;

roce::Status outcome_of(std::uint8_t syndrome) {
  switch (syndrome) {
    case Aeth::kInvalidRequest: return roce::Status::remote_invalid_request_error;
    case Aeth::kRemoteAccessError: return roce::Status::remote_access_error;
    case Aeth::kRemoteOperationError: return roce::Status::remote_operation_error;
    default: return roce::Status::bad_response_error;
  }
}

}  // namespace

void Progress::sent(roce::Psn end) {
  if (before(sent_, end)) sent_ = end;
}

roce::Psn Progress::oldest() const { return at_ < requests_.size() ? requests_[at_].first + answered_ : end_; }

void Progress::advance(std::uint32_t packets) {
  answered_ += packets;
  if (answered_ < requests_[at_].packets) return;
  requests_[at_].outcome = roce::Status::success;
  end_ = requests_[at_].first + requests_[at_].packets;
  answered_ = 0;
  ++at_;
}

// Completes requests before `upto`. False: a READ or atomic without its data comes first, which an ACK does not
// complete.
bool Progress::answer_before(roce::Psn upto) {
  while (before(oldest(), upto) && at_ < requests_.size()) {
    const auto& request = requests_[at_];
    if (request.wants_data()) return false;
    const auto covered = static_cast<std::uint32_t>(distance(request.first, upto));
    advance(std::min(covered, request.packets) - answered_);
  }
  return true;
}

Progress::Answer Progress::take(const WirePacket& answer) {
  const auto psn = answer.psn();
  if (ended_ || !before(psn, sent_) || before(psn, oldest())) return Answer::taken;
  return answer.row().operation == roce::Operation::acknowledge ? acknowledge(answer) : take_data(answer);
}

Progress::Answer Progress::acknowledge(const WirePacket& answer) {
  const auto psn = answer.psn();
  const auto syndrome = answer.headers.aeth->syndrome;
  const auto kind = syndrome & Aeth::kClassMask;
  if (kind == Aeth::kAck) return answer_before(psn + 1) ? Answer::taken : Answer::missing;
  if (!answer_before(psn)) return Answer::missing;
  if (kind == Aeth::kRnrNak) return Answer::not_ready;
  if (syndrome == Aeth::kSequenceError) return Answer::missing;
  give_up(outcome_of(syndrome));
  return Answer::fatal;
}

Progress::Answer Progress::take_data(const WirePacket& answer) {
  if (!answer_before(answer.psn()) || at_ == requests_.size() || oldest() != answer.psn()) return Answer::missing;
  auto& request = requests_[at_];
  if (!request.wants_data()) return Answer::missing;
  if (answer.headers.atomic_ack) {
    const auto original = std::as_bytes(std::span(&*answer.headers.atomic_ack, 1));
    request.brought.assign(original.begin(), original.end());
  } else {
    const auto bytes = answer.payload.bytes();
    request.brought.insert(request.brought.end(), bytes.begin(), bytes.end());
  }
  advance(1);
  return Answer::taken;
}

void Progress::give_up(roce::Status status) {
  if (ended_ || at_ == requests_.size()) return;
  ended_ = true;
  requests_[at_].outcome = status;
  for (auto at = at_ + 1; at < requests_.size(); ++at) requests_[at].outcome = roce::Status::flushed_error;
}

}  // namespace rnicsim::sim::replay
