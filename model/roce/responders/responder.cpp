// SPDX-License-Identifier: Apache-2.0
#include "model/roce/responders/responder.h"

#include <algorithm>
#include <utility>

namespace rnicsim::roce {
namespace {

bool takes_resource(Operation operation) {
  return operation == Operation::read || operation == Operation::atomic || operation == Operation::atomic_write;
}

}  // namespace

void Responder::start(const ResponderAttributes& attributes, Psn expected) {
  *this = {};
  attributes_ = attributes;
  expected_ = expected;
}

Verdict Responder::receive(const Headers& headers, std::uint32_t payload, const Offer& offer) {
  const Packet packet{headers, info(headers.bth.opcode), payload, offer};
  Verdict verdict;
  const bool passed = check_psn(packet, verdict) && check_opcode_sequence(packet, verdict) &&
                      check_opcode_valid(packet, verdict) && check_queue(packet, verdict) &&
                      check_resources(packet, verdict) && check_length(packet, verdict) && check_rkey(packet, verdict);
  if (passed) execute(packet, verdict);
  return verdict;
}

Verdict Responder::go_on(const Headers& headers, std::uint32_t payload, const Offer& offer) {
  const Packet packet{headers, info(headers.bth.opcode), payload, offer};
  Verdict verdict;
  if (!*offer.access_granted)
    refuse_access(packet, verdict);
  else if (offer.absent)
    not_ready(packet, verdict);
  else
    execute(packet, verdict);
  return verdict;
}

bool Responder::check_psn(const Packet& packet, Verdict& verdict) {
  const auto ahead = distance(expected_, packet.headers.bth.psn);
  if (ahead == 0) return true;
  if (ahead < 0) {
    const bool restarts =
        goes_back_0() && message_ && packet.headers.bth.psn == message_->first && begins_again(packet);
    if (!restarts) return duplicate(packet, verdict);
    restart_message();
    return true;
  }
  if (attributes_.recovery.keeps(ahead)) return keep_early(packet, verdict);
  if (nak_sent_) return false;
  nak_sent_ = true;
  if (goes_back_0() && message_) restart_message();
  reject(packet, Aeth::kSequenceError, verdict);
  verdict.psn = expected_;
  return false;
}

// Go-back-0: the data received so far does not count. A receive WQE that the message took stays with the message.
void Responder::restart_message() {
  expected_ = message_->first;
  message_->received = 0;
  message_->restarts = true;
}

bool Responder::begins_again(const Packet& packet) const {
  const auto& row = packet.row;
  return row.transport == attributes_.transport && row.begins() && !row.ends() &&
         row.operation == message_->operation && packet.headers.xrc_srqn.value_or(0) == message_->srqn;
}

// Keeps the packet until its turn. The payload of a WRITE may be placed in memory before that.
bool Responder::keep_early(const Packet& packet, Verdict& verdict) {
  const auto psn = packet.headers.bth.psn;
  verdict.early = true;
  if (packet.row.response() || packet.row.transport != attributes_.transport) return false;
  if (early_.contains(psn)) {
    verdict.duplicate = true;
    return false;
  }
  const auto begun = begun_early(packet);
  if (begun && !packet.offer.access_granted) {
    verdict.kind = Kind::wants_access;
    verdict.range = begun->target;
    verdict.access = remote_access::kWrite;
    return false;
  }
  const auto place = begun ? begun->part(psn, packet.payload, packet.row.ends(), attributes_.mtu) : early_place(packet);
  if (!place && !packet.offer.may_keep) return lose_early(verdict);
  if (begun && !packet.row.ends()) early_.begin_write(*begun);
  early_.insert(psn, expected_);
  verdict.kind = Kind::keep;
  if (place) {
    verdict.range = *place;
    verdict.access = remote_access::kWrite;
  }
  tell_of_gap(psn, verdict);
  return false;
}

// The first packet of a WRITE gives the target of the others. A target that the key does not grant is refused at the
// packet's turn. XRC: not used, since the packet's queue, and so the domain of its key, is not known yet.
std::optional<EarlyWrite> Responder::begun_early(const Packet& packet) const {
  const auto& reth = packet.headers.reth;
  const bool begins = packet.row.operation == Operation::write && packet.row.begins() && !of_xrc();
  const bool wanted = begins && attributes_.recovery.place_early;
  if (!wanted || reth->length == 0 || (attributes_.access & remote_access::kWrite) == 0) return std::nullopt;
  return EarlyWrite{packet.headers.bth.psn,
                    {reth->address, reth->rkey, reth->length},
                    packet.offer.access_granted.value_or(false) && !packet.offer.absent};
}

std::optional<RemoteRange> Responder::early_place(const Packet& packet) const {
  const auto& row = packet.row;
  const auto psn = packet.headers.bth.psn;
  const bool has_place = row.operation == Operation::write && packet.payload != 0 && !of_xrc();
  if (!has_place || !attributes_.recovery.place_early) return std::nullopt;
  if (message_ && message_->operation == Operation::write && !row.begins()) {
    const EarlyWrite current{expected_ - message_->received / attributes_.mtu, message_->target, true};
    if (const auto part = current.part(psn, packet.payload, row.ends(), attributes_.mtu)) return part;
  }
  return early_.place_of(psn, packet.payload, row.ends(), attributes_.mtu);
}

// The requester must go back: no other packet shows that this packet, which arrived, was dropped.
bool Responder::lose_early(Verdict& verdict) {
  verdict.early = false;
  if (std::exchange(nak_sent_, true)) return false;
  verdict.kind = Kind::reject;
  verdict.syndrome = Aeth::kSequenceError;
  verdict.psn = expected_;
  verdict.msn = msn_;
  return false;
}

void Responder::tell_of_gap(Psn came, Verdict& verdict) {
  const auto& recovery = attributes_.recovery;
  const bool selective = recovery.mode == Recovery::selective;
  if (!recovery.tells_of_loss(distance(expected_, came)) || (nak_sent_ && !selective)) return;
  nak_sent_ = true;
  verdict.tells_of_gap = true;
  verdict.syndrome = selective ? Aeth::kSelectiveNak : Aeth::kSequenceError;
  verdict.msn = selective ? came.value() : msn_;
  verdict.psn = expected_;
}

void Responder::pass_early(Verdict& verdict) {
  early_.move_to(expected_);
  verdict.next_kept = expected_;
}

bool Responder::check_opcode_sequence(const Packet& packet, Verdict& verdict) const {
  const auto& row = packet.row;
  if (row.response()) return false;
  if (message_ && message_->restarts) return begins_again(packet) || invalid(packet, verdict);
  const bool fits = row.begins() ? !message_ : message_ && message_->operation == row.operation;
  return fits || invalid(packet, verdict);
}

bool Responder::check_opcode_valid(const Packet& packet, Verdict& verdict) const {
  const auto& row = packet.row;
  if (row.transport != attributes_.transport) return invalid(packet, verdict);
  if (row.has(header::kInvalidate) && !attributes_.invalidate) return invalid(packet, verdict);
  if (row.operation == Operation::atomic_write && !attributes_.atomic_write) return invalid(packet, verdict);
  const auto needed = needed_access(packet);
  if (!row.begins() || (attributes_.access & needed) == needed) return true;
  // Checked before the receive: the answer must not depend on whether a receive WQE is available.
  reject(packet, Aeth::kRemoteAccessError, verdict);
  verdict.fatal = verdict.access_event = true;
  return false;
}

// All packets of a message name the same queue. A packet that takes a receive checks the queue with the receive.
bool Responder::check_queue(const Packet& packet, Verdict& verdict) const {
  if (!of_xrc()) return true;
  const bool begins = packet.row.begins();
  const bool moves = !begins && packet.headers.xrc_srqn != message_->srqn;
  if (moves || packet.offer.queue == Offer::Queue::refused) return invalid(packet, verdict);
  if (!begins || takes_receive(packet) || packet.offer.queue == Offer::Queue::known) return true;
  verdict.kind = Kind::wants_queue;
  return false;
}

bool Responder::check_resources(const Packet& packet, Verdict& verdict) {
  if (takes_resource(packet.row.operation))
    return packet.offer.rd_atomic_pending < attributes_.max_dest_rd_atomic || invalid(packet, verdict);
  if (!takes_receive(packet) || packet.offer.receive == Offer::Receive::available) return true;
  if (packet.offer.receive == Offer::Receive::unknown) {
    verdict.kind = Kind::wants_receive;
    return false;
  }
  return not_ready(packet, verdict);
}

bool Responder::check_length(const Packet& packet, Verdict& verdict) const {
  const auto& row = packet.row;
  if (!row.payload_fits(packet.payload, attributes_.mtu)) return invalid(packet, verdict);
  const std::uint64_t total = std::uint64_t{received_before(packet)} + packet.payload;
  if (total > attributes_.max_message) return invalid(packet, verdict);
  if (row.operation == Operation::atomic)
    return packet.headers.atomic->address % kAtomicBytes == 0 || invalid(packet, verdict);
  if (row.operation == Operation::atomic_write) return check_atomic_write(packet, verdict);
  if (row.operation == Operation::send) {
    if (total <= packet.offer.receive_bytes) return true;
    invalid(packet, verdict);
    verdict.receive_status = Status::local_length_error;
    verdict.begins_receive = takes_receive(packet);
    verdict.request_event = false;
    return false;
  }
  const auto length = packet.headers.reth ? packet.headers.reth->length : message_->target.length;
  if (length > attributes_.max_message) return invalid(packet, verdict);
  if (row.operation == Operation::read) return true;
  const bool fits = row.ends() ? total == length : total < length;
  return fits || invalid(packet, verdict);
}

bool Responder::check_atomic_write(const Packet& packet, Verdict& verdict) const {
  const auto& target = *packet.headers.reth;
  const bool fits = packet.payload == kAtomicBytes && target.length == kAtomicBytes;
  return (fits && target.address % kAtomicBytes == 0) || invalid(packet, verdict);
}

bool Responder::check_rkey(const Packet& packet, Verdict& verdict) {
  const auto range = named_range(packet);
  if (!range || range->length == 0) return true;
  if (packet.offer.access_granted == false) return refuse_access(packet, verdict);
  if (packet.offer.access_granted) return !packet.offer.absent || not_ready(packet, verdict);
  verdict.kind = Kind::wants_access;
  verdict.range = *range;
  verdict.access = needed_access(packet);
  return false;
}

void Responder::execute(const Packet& packet, Verdict& verdict) {
  execute_operation(packet, verdict);
  if (!early_.empty()) pass_early(verdict);
}

inline void Responder::execute_operation(const Packet& packet, Verdict& verdict) {
  nak_sent_ = false;
  const auto& headers = packet.headers;
  verdict.psn = headers.bth.psn;
  if (packet.row.operation == Operation::read) return execute_read(packet, verdict);
  if (packet.row.operation == Operation::atomic) return execute_atomic(packet, verdict);
  if (packet.row.operation == Operation::atomic_write) return execute_atomic_write(packet, verdict);
  verdict.kind = Kind::place;
  verdict.begins_receive = takes_receive(packet);
  if (packet.row.begins()) {
    const bool has_receive = message_ && message_->has_receive;  // go-back-0: from the earlier attempt
    message_ = InMessage{packet.row.operation, {}, 0, has_receive, headers.xrc_srqn.value_or(0), headers.bth.psn};
    if (headers.reth) message_->target = {headers.reth->address, headers.reth->rkey, headers.reth->length};
  }
  message_->has_receive |= verdict.begins_receive;
  verdict.offset = message_->received;
  verdict.to_receive_wqe = packet.row.operation == Operation::send;
  verdict.range = {message_->target.address + message_->received, message_->target.rkey, packet.payload};
  verdict.access = needed_access(packet);
  message_->received += packet.payload;
  expected_ = expected_ + 1;
  verdict.acknowledge = headers.bth.ack_request;
  if (packet.row.ends()) {
    verdict.completes = true;
    verdict.completes_receive = message_->has_receive;
    verdict.message_bytes = message_->received;
    verdict.invalidate = headers.invalidate;
    msn_ = (msn_ + 1) & Psn::kMask;
    message_.reset();
  }
  verdict.msn = msn_;
}

void Responder::execute_read(const Packet& packet, Verdict& verdict) {
  const auto& reth = *packet.headers.reth;
  verdict.kind = Kind::read;
  verdict.range = {reth.address, reth.rkey, reth.length};
  verdict.access = remote_access::kRead;
  verdict.domain = packet.offer.domain;
  expected_ = expected_ + packets_for(reth.length, attributes_.mtu);
  msn_ = (msn_ + 1) & Psn::kMask;
  verdict.msn = msn_;
}

void Responder::execute_atomic_write(const Packet& packet, Verdict& verdict) {
  verdict.kind = Kind::place;
  verdict.range = *named_range(packet);
  verdict.access = remote_access::kWrite;
  verdict.completes = verdict.answers_read = true;
  verdict.message_bytes = packet.payload;
  expected_ = expected_ + 1;
  msn_ = (msn_ + 1) & Psn::kMask;
  verdict.msn = msn_;
}

void Responder::execute_atomic(const Packet& packet, Verdict& verdict) {
  verdict.kind = Kind::atomic;
  verdict.range = *named_range(packet);
  verdict.access = remote_access::kAtomic;
  verdict.domain = packet.offer.domain;
  verdict.atomic = packet.headers.atomic;
  verdict.is_swap = packet.row.swaps();
  saved_.push_back({verdict.psn, {}});
  while (saved_.size() > attributes_.max_dest_rd_atomic) saved_.erase(saved_.begin());
  expected_ = expected_ + 1;
  msn_ = (msn_ + 1) & Psn::kMask;
  verdict.msn = msn_;
}

void Responder::atomic_done(Psn psn, std::uint64_t original) {
  if (auto* atomic = saved(psn)) atomic->original = original;
}

// The newest entry with this PSN: older ones are from an earlier wrap of the PSNs.
Responder::SavedAtomic* Responder::saved(Psn psn) {
  const auto found = std::ranges::find(saved_.rbegin(), saved_.rend(), psn, &SavedAtomic::psn);
  return found == saved_.rend() ? nullptr : &*found;
}

// SEND and WRITE are acknowledged again. A READ is executed again if all its PSNs were accepted before. An atomic is
// answered from its saved result.
bool Responder::duplicate(const Packet& packet, Verdict& verdict) {
  const bool request = !packet.row.response() && packet.row.transport == attributes_.transport;
  if (request && packet.row.operation == Operation::read) {
    duplicate_read(packet, verdict);
  } else if (request && packet.row.operation == Operation::atomic) {
    duplicate_atomic(packet, verdict);
  } else if (request && packet.row.operation == Operation::atomic_write) {
    duplicate_atomic_write(packet, verdict);
  } else if (request) {
    verdict.kind = Kind::acknowledge;
    verdict.psn = expected_ - 1;
  }
  verdict.duplicate = true;
  verdict.msn = msn_;
  return false;
}

void Responder::duplicate_read(const Packet& packet, Verdict& verdict) {
  const auto& headers = packet.headers;
  const auto& reth = *headers.reth;
  const auto packets = packets_for(reth.length, attributes_.mtu);
  const bool known = distance(headers.bth.psn, expected_) >= static_cast<std::int32_t>(packets) && packets <= 0x7fffff;
  const bool granted = (attributes_.access & remote_access::kRead) != 0;
  if (!known || !granted || packet.offer.duplicates_pending >= attributes_.max_dest_rd_atomic) return;
  if (packet.offer.queue == Offer::Queue::refused) return;
  if (of_xrc() && packet.offer.queue == Offer::Queue::unknown) {
    verdict.kind = Kind::wants_queue;
    return;
  }
  if (packet.offer.access_granted == false && reth.length != 0) return;
  // An accepted duplicate is answered, and its answer waits for absent memory.
  if (!packet.offer.access_granted && !check_rkey(packet, verdict)) return;
  verdict.kind = Kind::read;
  verdict.range = {reth.address, reth.rkey, reth.length};
  verdict.access = remote_access::kRead;
  verdict.domain = packet.offer.domain;
  verdict.psn = headers.bth.psn;
}

// The write is not repeated: later writes to the address must stay.
void Responder::duplicate_atomic_write(const Packet& packet, Verdict& verdict) const {
  if (packet.offer.duplicates_pending >= attributes_.max_dest_rd_atomic) return;
  verdict.kind = Kind::read;
  verdict.psn = packet.headers.bth.psn;
}

// A duplicate that is no longer saved, or not executed yet, is dropped: its answer is on the way, or nothing waits for
// it.
void Responder::duplicate_atomic(const Packet& packet, Verdict& verdict) {
  const auto* atomic = saved(packet.headers.bth.psn);
  if (atomic == nullptr || !atomic->original) return;
  verdict.kind = Kind::replay;
  verdict.psn = atomic->psn;
  verdict.original = *atomic->original;
}

bool Responder::reject(const Packet& packet, std::uint8_t syndrome, Verdict& verdict) const {
  verdict.kind = Kind::reject;
  verdict.syndrome = syndrome;
  verdict.psn = packet.headers.bth.psn;
  verdict.msn = msn_;
  return false;
}

bool Responder::not_ready(const Packet& packet, Verdict& verdict) {
  nak_sent_ = true;  // packets that follow in flight are dropped without an answer
  return reject(packet, Aeth::kRnrNak | (attributes_.min_rnr_timer & Aeth::kValueMask), verdict);
}

bool Responder::invalid(const Packet& packet, Verdict& verdict) const {
  verdict.fatal = verdict.request_event = true;
  return reject(packet, Aeth::kInvalidRequest, verdict);
}

bool Responder::refuse_access(const Packet& packet, Verdict& verdict) const {
  verdict.fatal = verdict.access_event = true;
  // WRITE with immediate: the receive WQE that the message would have taken completes with the error.
  if (packet.row.has(header::kImmediate) && packet.offer.receive == Offer::Receive::available) {
    verdict.receive_status = Status::local_access_error;
    verdict.begins_receive = true;
    verdict.access_event = false;
  }
  return reject(packet, Aeth::kRemoteAccessError, verdict);
}

bool Responder::takes_receive(const Packet& packet) const {
  if (packet.row.operation == Operation::send) return packet.row.begins() && !(message_ && message_->has_receive);
  return packet.row.operation == Operation::write && packet.row.has(header::kImmediate);
}

std::optional<RemoteRange> Responder::named_range(const Packet& packet) const {
  if (const auto& reth = packet.headers.reth) return RemoteRange{reth->address, reth->rkey, reth->length};
  if (const auto& atomic = packet.headers.atomic) return RemoteRange{atomic->address, atomic->rkey, kAtomicBytes};
  return std::nullopt;
}

std::uint32_t Responder::received_before(const Packet& packet) const {
  return packet.row.begins() ? 0 : message_->received;
}

std::uint32_t Responder::needed_access(const Packet& packet) const {
  switch (packet.row.operation) {
    case Operation::write:
    case Operation::atomic_write: return remote_access::kWrite;
    case Operation::read: return remote_access::kRead;
    case Operation::atomic: return remote_access::kAtomic;
    default: return 0;
  }
}

}  // namespace rnicsim::roce
