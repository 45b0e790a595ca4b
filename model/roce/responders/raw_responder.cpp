// SPDX-License-Identifier: Apache-2.0
#include "model/roce/responders/raw_responder.h"

namespace rnicsim::roce {

Verdict RawResponder::receive(std::uint32_t bytes, const Offer& offer) {
  if (offer.receive == Offer::Receive::unknown) return {Verdict::Kind::wants_receive};
  const bool has_one = offer.receive == Offer::Receive::available;
  // A dropped frame leaves the receive WQE for a later, shorter frame.
  if (!has_one || bytes > offer.receive_bytes) {
    Verdict dropped{Verdict::Kind::drop};
    const bool absent = offer.receive == Offer::Receive::absent;
    dropped.cause = has_one ? DropCause::unfit : absent ? DropCause::absent : DropCause::no_receive;
    return dropped;
  }
  msn_ = (msn_ + 1) & Psn::kMask;
  Verdict verdict{Verdict::Kind::place};
  verdict.to_receive_wqe = true;
  verdict.begins_receive = verdict.completes = verdict.completes_receive = true;
  verdict.message_bytes = bytes;
  verdict.msn = msn_;
  return verdict;
}

}  // namespace rnicsim::roce
