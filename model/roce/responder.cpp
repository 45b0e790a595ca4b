#include "model/roce/responder.h"

#include <algorithm>

namespace rnicsim::roce {

using Kind = Verdict::Kind;

void Responder::start(const ResponderAttributes& attributes, Psn expected) {
  *this = {};
  attributes_ = attributes;
  expected_ = expected;
}

Verdict Responder::receive(const Headers& headers, std::uint32_t payload, const Offer& offer) {
  const Packet packet{headers, info(headers.bth.opcode), payload, offer};
  if (auto verdict = check_psn(packet)) return *verdict;
  if (auto verdict = check_opcode_sequence(packet)) return *verdict;
  if (auto verdict = check_opcode_valid(packet)) return *verdict;
  if (auto verdict = check_resources(packet)) return *verdict;
  if (auto verdict = check_length(packet)) return *verdict;
  if (auto verdict = check_rkey(packet)) return *verdict;
  return execute(packet);
}

Verdict Responder::go_on(const Headers& headers, std::uint32_t payload, const Offer& offer) {
  const Packet packet{headers, info(headers.bth.opcode), payload, offer};
  return *offer.access_granted ? execute(packet) : refuse_access(packet);
}

Responder::Check Responder::check_psn(const Packet& packet) {
  const auto ahead = distance(expected_, packet.headers.bth.psn);
  if (ahead == 0) return std::nullopt;
  if (ahead < 0) return duplicate(packet);
  if (nak_sent_) return Verdict{Kind::drop};
  nak_sent_ = true;
  auto verdict = reject(packet, Aeth::kSequenceError, false);
  verdict.psn = expected_;
  return verdict;
}

Responder::Check Responder::check_opcode_sequence(const Packet& packet) {
  const auto& row = packet.row;
  if (row.response()) return Verdict{Kind::drop};
  if (row.begins()) return message_ ? Check(invalid(packet)) : std::nullopt;
  if (!message_ || message_->operation != row.operation) return invalid(packet);
  return std::nullopt;
}

Responder::Check Responder::check_opcode_valid(const Packet& packet) {
  const auto& row = packet.row;
  if (row.transport != Transport::rc) return invalid(packet);
  if (row.has(header::kInvalidate) && !attributes_.invalidate) return invalid(packet);
  const auto needed = needed_access(packet);
  if (!row.begins() || (attributes_.access & needed) == needed) return std::nullopt;
  // Before any receive is looked for: whether one happens to be held tells nothing.
  auto verdict = reject(packet, Aeth::kRemoteAccessError, true);
  verdict.access_event = true;
  return verdict;
}

Responder::Check Responder::check_resources(const Packet& packet) {
  if (packet.row.operation == Operation::read || packet.row.operation == Operation::atomic)
    return packet.offer.rd_atomic_pending >= attributes_.max_dest_rd_atomic ? Check(invalid(packet)) : std::nullopt;
  if (!takes_receive(packet)) return std::nullopt;
  if (packet.offer.receive == Offer::Receive::unknown) return Verdict{Kind::wants_receive};
  if (packet.offer.receive == Offer::Receive::available) return std::nullopt;
  nak_sent_ = true;  // what follows in flight is dropped without a word
  return reject(packet, Aeth::kRnrNak | (attributes_.min_rnr_timer & Aeth::kValueMask), false);
}

Responder::Check Responder::check_length(const Packet& packet) {
  const auto& row = packet.row;
  if (!row.payload_fits(packet.payload, attributes_.mtu)) return invalid(packet);
  const std::uint64_t total = std::uint64_t{received_before(packet)} + packet.payload;
  if (total > attributes_.max_message) return invalid(packet);
  if (row.operation == Operation::atomic)
    return packet.headers.atomic->address % kAtomicBytes != 0 ? Check(invalid(packet)) : std::nullopt;
  if (row.operation == Operation::send) {
    if (total <= packet.offer.receive_bytes) return std::nullopt;
    auto verdict = invalid(packet);
    verdict.receive_status = Status::local_length_error;
    verdict.begins_receive = takes_receive(packet);
    verdict.request_event = false;
    return verdict;
  }
  const auto length = packet.headers.reth ? packet.headers.reth->length : message_->target.length;
  if (length > attributes_.max_message) return invalid(packet);
  if (row.operation == Operation::read) return std::nullopt;
  const bool fits = row.ends() ? total == length : total < length;
  return fits ? std::nullopt : Check(invalid(packet));
}

Responder::Check Responder::check_rkey(const Packet& packet) {
  const auto range = named_range(packet);
  if (!range || range->length == 0) return std::nullopt;
  if (!packet.offer.access_granted) {
    Verdict verdict{Kind::wants_access};
    verdict.range = *range;
    verdict.access = needed_access(packet);
    return verdict;
  }
  return *packet.offer.access_granted ? std::nullopt : Check(refuse_access(packet));
}

Verdict Responder::execute(const Packet& packet) {
  nak_sent_ = false;
  if (packet.row.operation == Operation::read) return execute_read(packet);
  if (packet.row.operation == Operation::atomic) return execute_atomic(packet);
  const auto& headers = packet.headers;
  Verdict verdict{Kind::place};
  verdict.begins_receive = takes_receive(packet);
  if (packet.row.begins()) {
    message_ = InMessage{packet.row.operation, {}, 0, false};
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
  verdict.psn = headers.bth.psn;
  if (packet.row.ends()) {
    verdict.completes = true;
    verdict.completes_receive = message_->has_receive;
    verdict.message_bytes = message_->received;
    verdict.invalidate = headers.invalidate;
    msn_ = (msn_ + 1) & Psn::kMask;
    message_.reset();
  }
  verdict.msn = msn_;
  return verdict;
}

Verdict Responder::execute_read(const Packet& packet) {
  const auto& reth = *packet.headers.reth;
  Verdict verdict{Kind::read};
  verdict.range = {reth.address, reth.rkey, reth.length};
  verdict.access = remote_access::kRead;
  verdict.psn = packet.headers.bth.psn;
  expected_ = expected_ + packets_for(reth.length, attributes_.mtu);
  msn_ = (msn_ + 1) & Psn::kMask;
  verdict.msn = msn_;
  return verdict;
}

Verdict Responder::execute_atomic(const Packet& packet) {
  Verdict verdict{Kind::atomic};
  verdict.range = *named_range(packet);
  verdict.access = remote_access::kAtomic;
  verdict.atomic = packet.headers.atomic;
  verdict.is_swap = packet.row.opcode == Opcode::compare_swap;
  verdict.psn = packet.headers.bth.psn;
  saved_.push_back({verdict.psn, {}});
  while (saved_.size() > attributes_.max_dest_rd_atomic) saved_.erase(saved_.begin());
  expected_ = expected_ + 1;
  msn_ = (msn_ + 1) & Psn::kMask;
  verdict.msn = msn_;
  return verdict;
}

void Responder::atomic_done(Psn psn, std::uint64_t original) {
  if (auto* atomic = saved(psn)) atomic->original = original;
}

// The last of that PSN: those before it are of an earlier round of the circle.
Responder::SavedAtomic* Responder::saved(Psn psn) {
  const auto found = std::ranges::find(saved_.rbegin(), saved_.rend(), psn, &SavedAtomic::psn);
  return found == saved_.rend() ? nullptr : &*found;
}

// SEND and WRITE are answered again, a READ is executed again as far as its PSNs were accepted before, an atomic is
// answered from its saved result.
Verdict Responder::duplicate(const Packet& packet) {
  Verdict verdict{Kind::drop};
  const bool request = !packet.row.response() && packet.row.transport == Transport::rc;
  if (request && packet.row.operation == Operation::read) {
    verdict = duplicate_read(packet);
  } else if (request && packet.row.operation == Operation::atomic) {
    verdict = duplicate_atomic(packet);
  } else if (request) {
    verdict.kind = Kind::acknowledge;
    verdict.psn = expected_ - 1;
  }
  verdict.duplicate = true;
  verdict.msn = msn_;
  return verdict;
}

Verdict Responder::duplicate_read(const Packet& packet) {
  const auto& headers = packet.headers;
  const auto& reth = *headers.reth;
  const auto packets = packets_for(reth.length, attributes_.mtu);
  const bool known = distance(headers.bth.psn, expected_) >= static_cast<std::int32_t>(packets) && packets <= 0x7fffff;
  const bool granted = (attributes_.access & remote_access::kRead) != 0;
  if (!known || !granted || packet.offer.duplicates_pending >= attributes_.max_dest_rd_atomic) return {Kind::drop};
  if (auto check = check_rkey(packet)) return check->kind == Kind::wants_access ? *check : Verdict{Kind::drop};
  Verdict verdict{Kind::read};
  verdict.range = {reth.address, reth.rkey, reth.length};
  verdict.access = remote_access::kRead;
  verdict.psn = headers.bth.psn;
  return verdict;
}

// One that is not saved any more, or not carried out yet, is dropped: its own answer is on its way, or nobody waits.
Verdict Responder::duplicate_atomic(const Packet& packet) {
  const auto* atomic = saved(packet.headers.bth.psn);
  if (atomic == nullptr || !atomic->original) return {Kind::drop};
  Verdict verdict{Kind::replay};
  verdict.psn = atomic->psn;
  verdict.original = *atomic->original;
  return verdict;
}

Verdict Responder::reject(const Packet& packet, std::uint8_t syndrome, bool fatal) const {
  Verdict verdict{Kind::reject};
  verdict.syndrome = syndrome;
  verdict.fatal = fatal;
  verdict.psn = packet.headers.bth.psn;
  verdict.msn = msn_;
  return verdict;
}

Verdict Responder::invalid(const Packet& packet) const {
  auto verdict = reject(packet, Aeth::kInvalidRequest, true);
  verdict.request_event = true;
  return verdict;
}

Verdict Responder::refuse_access(const Packet& packet) const {
  auto verdict = reject(packet, Aeth::kRemoteAccessError, true);
  verdict.access_event = true;
  // A WRITE with immediate tells through the receive WQE that it would have taken.
  if (packet.row.has(header::kImmediate) && packet.offer.receive == Offer::Receive::available) {
    verdict.receive_status = Status::local_access_error;
    verdict.begins_receive = true;
    verdict.access_event = false;
  }
  return verdict;
}

bool Responder::takes_receive(const Packet& packet) const {
  if (packet.row.operation == Operation::send) return packet.row.begins();
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
    case Operation::write: return remote_access::kWrite;
    case Operation::read: return remote_access::kRead;
    case Operation::atomic: return remote_access::kAtomic;
    default: return 0;
  }
}

}  // namespace rnicsim::roce
