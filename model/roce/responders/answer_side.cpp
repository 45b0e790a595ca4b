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

Verdict AnswerSide::validate(const Headers& headers, std::uint32_t payload, Offer offer) {
  offer.rd_atomic_pending = rd_atomic_pending_;
  offer.duplicates_pending = duplicates_pending_;
  if (std::exchange(wants_access_, false) && offer.access_granted) return responder_.go_on(headers, payload, offer);
  auto verdict = responder_.receive(headers, payload, offer);
  // A packet that takes a receive is checked from the start: the caller must offer the receive again.
  wants_access_ = verdict.kind == Verdict::Kind::wants_access && !verdict.duplicate && !verdict.early &&
                  !info(headers.bth.opcode).has(header::kImmediate);
  return verdict;
}

// Adds the pending answer that the verdict requires.
void AnswerSide::accept(Verdict& verdict, std::uint32_t payload) {
  using Kind = Verdict::Kind;
  const bool needs_answer = verdict.kind != Kind::drop && verdict.kind != Kind::wants_receive &&
                            verdict.kind != Kind::wants_access && verdict.kind != Kind::wants_queue &&
                            verdict.kind != Kind::busy && (verdict.kind != Kind::keep || verdict.tells_of_gap);
  if (!needs_answer) return;
  auto& pending_answer = pending_answers_.emplace_back();
  pending_answer.id = verdict.pending_answer = next_answer_id_++;
  pending_answer.psn = verdict.psn;
  pending_answer.msn = verdict.msn;
  pending_answer.duplicate = verdict.duplicate;
  switch (verdict.kind) {
    case Kind::acknowledge: pending_answer.kind = PendingAnswer::Kind::acknowledge; break;
    case Kind::keep:
      pending_answer.kind = PendingAnswer::Kind::nak;
      pending_answer.syndrome = verdict.syndrome;
      break;
    case Kind::reject:
      pending_answer.kind = PendingAnswer::Kind::nak;
      pending_answer.syndrome = verdict.syndrome;
      pending_answer.fatal = verdict.fatal;
      pending_answer.completes_receive = verdict.receive_status.has_value();
      break;
    case Kind::place:
      if (verdict.acknowledge) pending_answer.kind = PendingAnswer::Kind::acknowledge;
      if (verdict.answers_read) pending_answer.kind = PendingAnswer::Kind::read;
      pending_answer.waits = payload != 0 || transport_ == Transport::ud;  // a GRH is always written
      pending_answer.to_receive = verdict.to_receive_wqe;
      pending_answer.completes_receive = verdict.completes_receive;
      pending_answer.invalidate = verdict.invalidate;
      if (verdict.answers_read) order_data();
      break;
    case Kind::read:
      pending_answer.kind = PendingAnswer::Kind::read;
      pending_answer.range = verdict.range;
      pending_answer.domain = verdict.domain;
      order_data();
      break;
    default:  // atomic, replay
      pending_answer.kind = PendingAnswer::Kind::atomic;
      pending_answer.is_swap = verdict.is_swap;
      pending_answer.original = verdict.original;
      if (verdict.kind == Kind::atomic) {
        pending_answer.waits = true;
        pending_answer.atomic = verdict.atomic;
        pending_answer.domain = verdict.domain;
        ++atomics_pending_;
      }
      order_data();
  }
}

// The last pending answer is new.
void AnswerSide::order_data() {
  if (pending_answers_.back().duplicate) return order_again();
  ++rd_atomic_pending_;
}

// True: the READ `again` requests the rest of `read` from a packet that was already sent.
bool AnswerSide::requests_rest(const PendingAnswer& again, const PendingAnswer& read) const {
  if (again.kind != PendingAnswer::Kind::read || read.kind != PendingAnswer::Kind::read) return false;
  const auto packets = distance(read.psn, again.psn);
  const bool was_sent = packets >= 0 && static_cast<std::uint32_t>(packets) < read.next_packet;
  const auto skipped = static_cast<std::uint64_t>(packets) * mtu_;
  return was_sent && again.range.rkey == read.range.rkey && again.range.address == read.range.address + skipped &&
         skipped + again.range.length == read.range.length;
}

// A requester that went back expects answers in the order of PSNs: the answer of a duplicate goes before pending
// answers of later requests. If the answer is already pending, no second one is added. If a part of the READ's response
// was lost, the requester discards the rest of the response: the duplicate's response takes its place.
void AnswerSide::order_again() {
  const auto last = std::prev(pending_answers_.end());
  for (auto earlier = pending_answers_.begin(); earlier != last; ++earlier) {
    const bool covered = !before(last->psn, earlier->psn + earlier->next_packet) &&
                         before(last->psn, earlier->psn + packets_of(*earlier));
    if (earlier->has_data() && covered) return pending_answers_.pop_back();
    if (!requests_rest(*last, *earlier)) continue;
    --pending(earlier->duplicate);
    pending_answers_.erase(earlier);
    break;
  }
  ++duplicates_pending_;
  auto behind = last;
  while (behind != pending_answers_.begin() && before(last->psn, std::prev(behind)->psn)) --behind;
  pending_answers_.splice(behind, pending_answers_, last);
}

std::uint32_t AnswerSide::packets_of(const PendingAnswer& pending_answer) const {
  return pending_answer.kind == PendingAnswer::Kind::read ? packets_for(pending_answer.range.length, mtu_) : 1;
}

AnswerSide::PendingAnswer* AnswerSide::find(AnswerId id) {
  const auto found = std::ranges::find(pending_answers_, id, &PendingAnswer::id);
  return found == pending_answers_.end() ? nullptr : &*found;
}

// Consecutive atomics do not wait for each other, but for earlier writes.
void AnswerSide::start_atomics() {
  if (atomics_pending_ == 0) return;
  for (auto& pending_answer : pending_answers_) {
    if (pending_answer.kind != PendingAnswer::Kind::atomic && pending_answer.waits) return;
    if (!pending_answer.atomic) continue;
    const auto operation = *std::exchange(pending_answer.atomic, std::nullopt);
    actions_.start_atomic(slot_, pending_answer.id, pending_answer.psn, operation, pending_answer.is_swap,
                          pending_answer.domain);
  }
}

void AnswerSide::placed(AnswerId id, MemoryResult result) {
  if (auto* pending_answer = find(id)) {
    pending_answer->waits = false;
    pending_answer->result = result;
  }
  settle();
}

void AnswerSide::atomic_executed(AnswerId id, MemoryResult result, std::uint64_t original) {
  auto* pending_answer = find(id);
  if (pending_answer == nullptr) return;
  --atomics_pending_;
  pending_answer->waits = false;
  pending_answer->result = result;
  pending_answer->original = original;
  if (result == MemoryResult::ok) responder_.atomic_done(pending_answer->psn, original);
  settle();
}

void AnswerSide::invalidated(AnswerId id) {
  if (auto* pending_answer = find(id)) pending_answer->waits = false;
  settle();
}

void AnswerSide::settle() {
  while (!pending_answers_.empty() && !pending_answers_.front().waits) {
    if (pending_answers_.front().result != MemoryResult::ok) {
      if (!place_failed(pending_answers_.begin())) return;
      continue;
    }
    auto& head = pending_answers_.front();
    if (const auto key = std::exchange(head.invalidate, std::nullopt)) {
      head.waits = true;
      return actions_.invalidate(slot_, head.id, *key);
    }
    if (std::exchange(head.completes_receive, false)) actions_.receive_completed(slot_, head.id);
    if (head.kind != PendingAnswer::Kind::silent) break;
    pending_answers_.pop_front();
  }
  start_atomics();
}

void AnswerSide::settle_ahead() {
  for (auto pending_answer = pending_answers_.begin();
       pending_answer != pending_answers_.end() && !pending_answer->waits && !pending_answer->has_data();
       ++pending_answer) {
    if (pending_answer->result != MemoryResult::ok) return void(place_failed(pending_answer));
    if (std::exchange(pending_answer->completes_receive, false)) actions_.receive_completed(slot_, pending_answer->id);
  }
  settle();
}

// The payload could not be written; all earlier payload was. Reliable transports: a NAK is sent, after which all is
// flushed. Others: a receive completes with the error, or the message is dropped. True: continue with the next answer.
bool AnswerSide::place_failed(PooledList<PendingAnswer>::iterator pending_answer) {
  const bool refused = pending_answer->result == MemoryResult::refused && !pending_answer->to_receive;
  const PlacementFailure failure{pending_answer->id, pending_answer->to_receive, pending_answer->completes_receive,
                                 refused};
  if (reliable()) {
    pending_answer->kind = PendingAnswer::Kind::nak;
    pending_answer->syndrome = refused ? Aeth::kRemoteAccessError : Aeth::kRemoteOperationError;
    pending_answer->result = MemoryResult::ok;
    pending_answer->fatal = true;
    pending_answer->completes_receive = false;
    pending_answer->invalidate.reset();
  } else {
    pending_answers_.erase(pending_answer);
  }
  actions_.placement_failed(slot_, failure);
  return reliable() || (!failure.to_receive && !failure.completes_receive);
}

std::optional<std::uint32_t> AnswerSide::next() const {
  if (pending_answers_.empty()) return std::nullopt;
  const auto& head = pending_answers_.front();
  if (head.waits || head.kind == PendingAnswer::Kind::silent) return std::nullopt;
  return head.kind == PendingAnswer::Kind::read ? std::min(mtu_, head.range.length) : 0;
}

std::size_t AnswerSide::pending_answer() const {
  const auto held = std::ranges::find_if(pending_answers_, [](const PendingAnswer& pending_answer) {
    return pending_answer.waits || pending_answer.result != MemoryResult::ok ||
           pending_answer.kind != PendingAnswer::Kind::acknowledge;
  });
  return static_cast<std::size_t>(std::distance(held, pending_answers_.end()));
}

// Merges acknowledgements at the head into the last one of their run, or into the `chosen` one.
void AnswerSide::pass_over_acknowledgements(std::optional<Psn> chosen) {
  while (pending_answers_.size() > 1 && pending_answers_.front().kind == PendingAnswer::Kind::acknowledge &&
         pending_answers_.front().psn != chosen) {
    const auto& next = *std::next(pending_answers_.begin());
    if (next.waits || next.invalidate || next.result != MemoryResult::ok) return;  // the completion is not reported yet
    if (!chosen && next.kind != PendingAnswer::Kind::acknowledge) return;
    pending_answers_.pop_front();
    settle();
  }
}

SentAnswer AnswerSide::answer(Headers& headers, std::optional<Psn> chosen) {
  pass_over_acknowledgements(chosen);
  if (pending_answers_.front().kind == PendingAnswer::Kind::read) return read_packet(headers);
  const auto& head = pending_answers_.front();
  const bool atomic = head.kind == PendingAnswer::Kind::atomic;
  put(headers, reliable_opcode(transport_, atomic ? Opcode::atomic_acknowledge : Opcode::acknowledge), head.psn, head);
  if (atomic) {
    --pending(head.duplicate);
    headers.atomic_ack = head.original;
  }
  const SentAnswer sent{.fatal = head.fatal, .range = {}};
  pending_answers_.pop_front();
  return sent;
}

SentAnswer AnswerSide::read_packet(Headers& headers) {
  auto& read = pending_answers_.front();
  const auto packets = packets_of(read);
  const auto index = read.next_packet++;
  const auto offset = index * mtu_;
  put(headers, opcode_of(transport_, Operation::read_response, position_of(index, packets)), read.psn + index, read);
  const auto domain = read.domain;
  const RemoteRange part{read.range.address + offset, read.range.rkey, std::min(mtu_, read.range.length - offset)};
  if (index + 1 == packets) {
    --pending(read.duplicate);
    pending_answers_.pop_front();
  }
  return {.is_read = true, .begins = index == 0, .range = part, .domain = domain};
}

void AnswerSide::put(Headers& headers, Opcode opcode, Psn psn, const PendingAnswer& pending_answer) const {
  headers.bth.opcode = opcode;
  headers.bth.destination = remote_;
  headers.bth.psn = psn;
  if (info(opcode).has(header::kAeth)) headers.aeth = Aeth{pending_answer.syndrome, pending_answer.msn};
}

// A NAK replaces the packet; all later answers are dropped.
void AnswerSide::unreadable(Psn psn, MemoryResult result) {
  pending_answers_.clear();
  const auto syndrome = result == MemoryResult::unreachable ? Aeth::kRemoteOperationError : Aeth::kRemoteAccessError;
  auto& nak = pending_answers_.emplace_back();
  nak.kind = PendingAnswer::Kind::nak;
  nak.id = next_answer_id_++;
  nak.psn = psn;
  nak.syndrome = syndrome;
  nak.msn = responder_.msn();
  nak.fatal = true;
}

}  // namespace rnicsim::roce
