// SPDX-License-Identifier: Apache-2.0
#include "model/roce/responders/answer_side.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace rnicsim::roce {

void AnswerSide::start(const ResponderAttributes& attributes, Psn expected) {
  responder_.start(attributes, expected);
  remote_ = attributes.remote;
  mtu_ = attributes.mtu;
}

void AnswerSide::update(const ResponderAttributes& attributes) {
  responder_.update(attributes);
  wants_access_ = false;
  remote_ = attributes.remote;
  mtu_ = attributes.mtu;
}

Verdict AnswerSide::judge(const Headers& headers, std::uint32_t payload, Offer offer) {
  offer.rd_atomic_pending = rd_atomic_pending_;
  offer.duplicates_pending = duplicates_pending_;
  if (std::exchange(wants_access_, false) && offer.access_granted) return responder_.go_on(headers, payload, offer);
  auto verdict = responder_.receive(headers, payload, offer);
  // A packet that takes a receive is judged from the start: the caller must offer the receive again.
  wants_access_ = verdict.kind == Verdict::Kind::wants_access && !verdict.duplicate && !verdict.early &&
                  !info(headers.bth.opcode).has(header::kImmediate);
  return verdict;
}

// Adds the pending answer that the verdict requires.
void AnswerSide::accept(Verdict& verdict, std::uint32_t payload) {
  using Kind = Verdict::Kind;
  const bool owes = verdict.kind != Kind::drop && verdict.kind != Kind::wants_receive &&
                    verdict.kind != Kind::wants_access && verdict.kind != Kind::wants_queue &&
                    verdict.kind != Kind::busy && (verdict.kind != Kind::keep || verdict.tells_of_gap);
  if (!owes) return;
  auto& owed = owed_.emplace_back();
  owed.id = verdict.owed = next_owed_++;
  owed.psn = verdict.psn;
  owed.msn = verdict.msn;
  owed.duplicate = verdict.duplicate;
  switch (verdict.kind) {
    case Kind::acknowledge: owed.kind = Owed::Kind::acknowledge; break;
    case Kind::keep:
      owed.kind = Owed::Kind::nak;
      owed.syndrome = verdict.syndrome;
      break;
    case Kind::reject:
      owed.kind = Owed::Kind::nak;
      owed.syndrome = verdict.syndrome;
      owed.fatal = verdict.fatal;
      owed.completes_receive = verdict.receive_status.has_value();
      break;
    case Kind::place:
      if (verdict.acknowledge) owed.kind = Owed::Kind::acknowledge;
      if (verdict.answers_read) owed.kind = Owed::Kind::read;
      owed.waits = payload != 0 || transport_ == Transport::ud;  // a GRH is always written
      owed.to_receive = verdict.to_receive_wqe;
      owed.completes_receive = verdict.completes_receive;
      owed.invalidate = verdict.invalidate;
      if (verdict.answers_read) order_data();
      break;
    case Kind::read:
      owed.kind = Owed::Kind::read;
      owed.range = verdict.range;
      owed.domain = verdict.domain;
      order_data();
      break;
    default:  // atomic, replay
      owed.kind = Owed::Kind::atomic;
      owed.is_swap = verdict.is_swap;
      owed.original = verdict.original;
      if (verdict.kind == Kind::atomic) {
        owed.waits = true;
        owed.atomic = verdict.atomic;
        owed.domain = verdict.domain;
        ++atomics_pending_;
      }
      order_data();
  }
}

// The last pending answer is new.
void AnswerSide::order_data() {
  if (owed_.back().duplicate) return order_again();
  ++rd_atomic_pending_;
}

// A requester that went back expects answers in the order of PSNs: the answer of a duplicate goes before pending
// answers of later requests. If the answer is already pending, no second one is added.
void AnswerSide::order_again() {
  const auto last = std::prev(owed_.end());
  for (auto earlier = owed_.begin(); earlier != last; ++earlier) {
    const bool covered = !before(last->psn, earlier->psn + earlier->next_packet) &&
                         before(last->psn, earlier->psn + packets_of(*earlier));
    if (earlier->has_data() && covered) return owed_.pop_back();
  }
  ++duplicates_pending_;
  auto behind = last;
  while (behind != owed_.begin() && before(last->psn, std::prev(behind)->psn)) --behind;
  owed_.splice(behind, owed_, last);
}

std::uint32_t AnswerSide::packets_of(const Owed& owed) const {
  return owed.kind == Owed::Kind::read ? packets_for(owed.range.length, mtu_) : 1;
}

AnswerSide::Owed* AnswerSide::find(OwedId id) {
  const auto found = std::ranges::find(owed_, id, &Owed::id);
  return found == owed_.end() ? nullptr : &*found;
}

// Consecutive atomics do not wait for each other, but for earlier writes.
void AnswerSide::carry_out_atomics() {
  if (atomics_pending_ == 0) return;
  for (auto& owed : owed_) {
    if (owed.kind != Owed::Kind::atomic && owed.waits) return;
    if (!owed.atomic) continue;
    const auto operation = *std::exchange(owed.atomic, std::nullopt);
    actions_.carry_out(slot_, owed.id, owed.psn, operation, owed.is_swap, owed.domain);
  }
}

void AnswerSide::placed(OwedId id, MemoryResult result) {
  if (auto* owed = find(id)) {
    owed->waits = false;
    owed->result = result;
  }
  settle();
}

void AnswerSide::carried_out(OwedId id, MemoryResult result, std::uint64_t original) {
  auto* owed = find(id);
  if (owed == nullptr) return;
  --atomics_pending_;
  owed->waits = false;
  owed->result = result;
  owed->original = original;
  if (result == MemoryResult::ok) responder_.atomic_done(owed->psn, original);
  settle();
}

void AnswerSide::invalidated(OwedId id) {
  if (auto* owed = find(id)) owed->waits = false;
  settle();
}

void AnswerSide::settle() {
  while (!owed_.empty() && !owed_.front().waits) {
    if (owed_.front().result != MemoryResult::ok) {
      if (!place_failed(owed_.begin())) return;
      continue;
    }
    auto& head = owed_.front();
    if (const auto key = std::exchange(head.invalidate, std::nullopt)) {
      head.waits = true;
      return actions_.invalidate(slot_, head.id, *key);
    }
    if (std::exchange(head.completes_receive, false)) actions_.receive_completed(slot_, head.id);
    if (head.kind != Owed::Kind::silent) break;
    owed_.pop_front();
  }
  carry_out_atomics();
}

void AnswerSide::settle_ahead() {
  for (auto owed = owed_.begin(); owed != owed_.end() && !owed->waits && !owed->has_data(); ++owed) {
    if (owed->result != MemoryResult::ok) return void(place_failed(owed));
    if (std::exchange(owed->completes_receive, false)) actions_.receive_completed(slot_, owed->id);
  }
  settle();
}

// The payload could not be written; all earlier payload was. Reliable transports: a NAK is sent, after which all is
// flushed. Others: a receive completes with the error, or the message is dropped. True: continue with the next answer.
bool AnswerSide::place_failed(PooledList<Owed>::iterator owed) {
  const bool refused = owed->result == MemoryResult::refused && !owed->to_receive;
  const PlacementFailure failure{owed->id, owed->to_receive, owed->completes_receive, refused};
  if (reliable()) {
    owed->kind = Owed::Kind::nak;
    owed->syndrome = refused ? Aeth::kRemoteAccessError : Aeth::kRemoteOperationError;
    owed->result = MemoryResult::ok;
    owed->fatal = true;
    owed->completes_receive = false;
    owed->invalidate.reset();
  } else {
    owed_.erase(owed);
  }
  actions_.placement_failed(slot_, failure);
  return reliable() || (!failure.to_receive && !failure.completes_receive);
}

std::optional<std::uint32_t> AnswerSide::next() const {
  if (owed_.empty()) return std::nullopt;
  const auto& head = owed_.front();
  if (head.waits || head.kind == Owed::Kind::silent) return std::nullopt;
  return head.kind == Owed::Kind::read ? std::min(mtu_, head.range.length) : 0;
}

std::size_t AnswerSide::owed() const {
  const auto held = std::ranges::find_if(owed_, [](const Owed& owed) {
    return owed.waits || owed.result != MemoryResult::ok || owed.kind != Owed::Kind::acknowledge;
  });
  return static_cast<std::size_t>(std::distance(held, owed_.end()));
}

// Merges acknowledgements at the head into the last one of their run, or into the `chosen` one.
void AnswerSide::pass_over_acknowledgements(std::optional<Psn> chosen) {
  while (owed_.size() > 1 && owed_.front().kind == Owed::Kind::acknowledge && owed_.front().psn != chosen) {
    const auto& next = *std::next(owed_.begin());
    if (next.waits || next.invalidate || next.result != MemoryResult::ok) return;  // the completion is not reported yet
    if (!chosen && next.kind != Owed::Kind::acknowledge) return;
    owed_.pop_front();
    settle();
  }
}

SentAnswer AnswerSide::answer(Headers& headers, std::optional<Psn> chosen) {
  pass_over_acknowledgements(chosen);
  if (owed_.front().kind == Owed::Kind::read) return read_packet(headers);
  const auto& head = owed_.front();
  const bool atomic = head.kind == Owed::Kind::atomic;
  put(headers, reliable_opcode(transport_, atomic ? Opcode::atomic_acknowledge : Opcode::acknowledge), head.psn, head);
  if (atomic) {
    --pending(head.duplicate);
    headers.atomic_ack = head.original;
  }
  const SentAnswer sent{.fatal = head.fatal, .range = {}};
  owed_.pop_front();
  return sent;
}

SentAnswer AnswerSide::read_packet(Headers& headers) {
  auto& read = owed_.front();
  const auto packets = packets_of(read);
  const auto index = read.next_packet++;
  const auto offset = index * mtu_;
  put(headers, opcode_of(transport_, Operation::read_response, position_of(index, packets)), read.psn + index, read);
  const auto domain = read.domain;
  const RemoteRange part{read.range.address + offset, read.range.rkey, std::min(mtu_, read.range.length - offset)};
  if (index + 1 == packets) {
    --pending(read.duplicate);
    owed_.pop_front();
  }
  return {.is_read = true, .begins = index == 0, .range = part, .domain = domain};
}

void AnswerSide::put(Headers& headers, Opcode opcode, Psn psn, const Owed& owed) const {
  headers.bth.opcode = opcode;
  headers.bth.destination = remote_;
  headers.bth.psn = psn;
  if (info(opcode).has(header::kAeth)) headers.aeth = Aeth{owed.syndrome, owed.msn};
}

// A NAK replaces the packet; all later answers are dropped.
void AnswerSide::unreadable(Psn psn, MemoryResult result) {
  owed_.clear();
  const auto syndrome = result == MemoryResult::unreachable ? Aeth::kRemoteOperationError : Aeth::kRemoteAccessError;
  auto& nak = owed_.emplace_back();
  nak.kind = Owed::Kind::nak;
  nak.id = next_owed_++;
  nak.psn = psn;
  nak.syndrome = syndrome;
  nak.msn = responder_.msn();
  nak.fatal = true;
}

}  // namespace rnicsim::roce
