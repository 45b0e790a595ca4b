// SPDX-License-Identifier: Apache-2.0
#include "model/roce/responders/ud_responder.h"

namespace rnicsim::roce {
namespace {

Verdict dropped_for(DropCause cause) {
  Verdict verdict{Verdict::Kind::drop};
  verdict.cause = cause;
  return verdict;
}

}  // namespace

Verdict UdResponder::receive(const Headers& headers, std::uint32_t payload, const Offer& offer) {
  const auto& row = info(headers.bth.opcode);
  if (headers.deth->qkey != attributes_.qkey) return dropped_for(DropCause::bad_qkey);
  if (!row.payload_fits(payload, attributes_.mtu)) return dropped_for(DropCause::unfit);
  if (offer.receive == Offer::Receive::unknown) return {Verdict::Kind::wants_receive};
  if (offer.receive == Offer::Receive::none) return dropped_for(DropCause::no_receive);
  if (offer.receive == Offer::Receive::absent) return dropped_for(DropCause::absent);
  // A dropped message leaves the receive WQE for a later, shorter message.
  if (std::uint64_t{kGrhBytes} + payload > offer.receive_bytes) return dropped_for(DropCause::unfit);
  msn_ = (msn_ + 1) & Psn::kMask;
  Verdict verdict{Verdict::Kind::place};
  verdict.to_receive_wqe = true;
  verdict.begins_receive = verdict.completes = verdict.completes_receive = true;
  verdict.message_bytes = kGrhBytes + payload;
  verdict.psn = headers.bth.psn;
  verdict.msn = msn_;
  return verdict;
}

}  // namespace rnicsim::roce
