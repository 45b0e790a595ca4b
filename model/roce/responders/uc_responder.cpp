// SPDX-License-Identifier: Apache-2.0
#include "model/roce/responders/uc_responder.h"

namespace rnicsim::roce {

void UcResponder::start(const ResponderAttributes& attributes, Psn expected) {
  *this = {};
  attributes_ = attributes;
  expected_ = expected;
}

Verdict UcResponder::receive(const Headers& headers, std::uint32_t payload, const Offer& offer) {
  const auto& row = info(headers.bth.opcode);
  const bool goes_on =
      !row.begins() && message_ && headers.bth.psn == expected_ && message_->operation == row.operation;
  const Packet packet{headers, row, payload, offer, goes_on ? &*message_ : nullptr};
  if (const auto cause = check(packet)) return drop(packet, *cause);
  const bool takes_receive = uses_receive(packet) && !holds_receive_;
  if (takes_receive && offer.receive == Offer::Receive::unknown) return {Kind::wants_receive};
  if (takes_receive && offer.receive == Offer::Receive::none) return drop(packet, DropCause::no_receive);
  if (takes_receive && offer.receive == Offer::Receive::absent) return drop(packet, DropCause::absent);
  if (!length_fits(packet)) return drop(packet, DropCause::unfit);
  if (headers.reth && headers.reth->length != 0) {
    if (!offer.access_granted) {
      Verdict verdict{Kind::wants_access};
      verdict.range = {headers.reth->address, headers.reth->rkey, headers.reth->length};
      verdict.access = remote_access::kWrite;
      return verdict;
    }
    if (!*offer.access_granted) return drop(packet, DropCause::unfit);
    if (offer.absent) return drop(packet, DropCause::absent);
  }
  return execute(packet);
}

Verdict UcResponder::go_on(const Headers& headers, std::uint32_t payload, const Offer& offer) {
  const Packet packet{headers, info(headers.bth.opcode), payload, offer, nullptr};
  if (!*offer.access_granted) return drop(packet, DropCause::unfit);
  return offer.absent ? drop(packet, DropCause::absent) : execute(packet);
}

std::optional<DropCause> UcResponder::check(const Packet& packet) const {
  if (!packet.row.begins() && packet.message == nullptr) return DropCause::out_of_sequence;
  const bool writes = packet.row.operation == Operation::write;
  if (writes && (attributes_.access & remote_access::kWrite) == 0) return DropCause::unfit;
  return std::nullopt;
}

bool UcResponder::uses_receive(const Packet& packet) const {
  return packet.row.operation == Operation::send || packet.row.has(header::kImmediate);
}

bool UcResponder::length_fits(const Packet& packet) const {
  const auto& row = packet.row;
  if (!row.payload_fits(packet.payload, attributes_.mtu)) return false;
  const std::uint64_t total = std::uint64_t{packet.message != nullptr ? packet.message->received : 0} + packet.payload;
  if (total > attributes_.max_message) return false;
  if (row.operation == Operation::send) return total <= packet.offer.receive_bytes;
  const auto length = packet.message != nullptr ? packet.message->target.length : packet.headers.reth->length;
  if (length > attributes_.max_message) return false;
  return row.ends() ? total == length : total < length;
}

Verdict UcResponder::drop(const Packet& packet, DropCause cause) {
  // A gap also loses the message that began before it.
  message_.reset();
  expected_ = packet.headers.bth.psn + 1;
  Verdict verdict{Kind::drop};
  verdict.cause = cause;
  return verdict;
}

Verdict UcResponder::execute(const Packet& packet) {
  const auto& headers = packet.headers;
  Verdict verdict{Kind::place};
  verdict.to_receive_wqe = packet.row.operation == Operation::send;
  verdict.begins_receive = uses_receive(packet) && !holds_receive_;
  holds_receive_ |= verdict.begins_receive;
  if (packet.row.begins()) {
    message_ = InMessage{packet.row.operation, {}, 0};
    if (headers.reth) message_->target = {headers.reth->address, headers.reth->rkey, headers.reth->length};
  }
  verdict.offset = message_->received;
  verdict.range = {message_->target.address + message_->received, message_->target.rkey, packet.payload};
  verdict.access = verdict.to_receive_wqe ? 0 : remote_access::kWrite;
  message_->received += packet.payload;
  expected_ = headers.bth.psn + 1;
  verdict.psn = headers.bth.psn;
  if (packet.row.ends()) {
    verdict.completes = true;
    verdict.completes_receive = uses_receive(packet);
    verdict.message_bytes = message_->received;
    if (verdict.completes_receive) holds_receive_ = false;
    msn_ = (msn_ + 1) & Psn::kMask;
    message_.reset();
  }
  verdict.msn = msn_;
  return verdict;
}

}  // namespace rnicsim::roce
