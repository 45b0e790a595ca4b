// SPDX-License-Identifier: Apache-2.0
#include "model/nic/queues/doorbell.h"

namespace rnicsim::nic {
namespace {

constexpr std::uint32_t kKernelPage = 0;

}  // namespace

void Doorbell::write(const UarWrite& write) {
  using What = Refusal::What;
  using Why = Refusal::Why;
  const auto said = personality_.decode_doorbell(write.offset, write.data);
  const DoorbellPlace place{write.page, write.offset, said.number};
  switch (said.kind) {
    case DoorbellWrite::Kind::send:
      ++counters_.send_doorbells;
      return ring(place, {{said.number}, static_cast<std::uint16_t>(said.position), {}});
    case DoorbellWrite::Kind::blueflame:
      ++counters_.blueflame_doorbells;
      if (!said.sound)
        return refuse(place, Refused::Kind::blueflame, Refused::Reason::malformed, What::blueflame, Why::malformed);
      return ring(place, {{said.number}, static_cast<std::uint16_t>(said.position), Payload::copy_of(said.wqe)});
    case DoorbellWrite::Kind::cq_arm: return arm(place, {said.number, said.solicited_only, said.position});
    case DoorbellWrite::Kind::eq:
      if (write.page == kKernelPage) return consume(place, {said.number, said.position});
      return refuse(place, Refused::Kind::unknown, Refused::Reason::malformed, What::eq_doorbell, Why::wrong_page);
    case DoorbellWrite::Kind::unknown: break;
  }
  refuse({write.page, write.offset, 0}, Refused::Kind::unknown, Refused::Reason::malformed, What::doorbell,
         Why::malformed);
}

void Doorbell::ring(const DoorbellPlace& place, SendDoorbell&& doorbell) {
  const auto* qp = contexts_.qps.find(doorbell.qpn.value);
  if (qp == nullptr || qp->uar_page != place.page) {
    const bool plain = doorbell.wqe.empty();
    return refuse(place, plain ? Refused::Kind::send : Refused::Kind::blueflame, Refused::Reason::wrong_page,
                  plain ? Refusal::What::send_doorbell : Refusal::What::blueflame,
                  qp == nullptr ? Refusal::Why::no_object : Refusal::Why::wrong_page);
  }
  if (rung) rung({place.page, doorbell.qpn, doorbell.producer, static_cast<std::uint32_t>(doorbell.wqe.size())});
  send(std::move(doorbell));
}

void Doorbell::arm(const DoorbellPlace& place, const CqArmed& arm) {
  ++counters_.cq_arms;
  armed(arm);
  contexts_.cqs.lookup(arm.cqn, [this, arm, place](CompletionQueue* queue) {
    if (queue == nullptr || queue->uar_page != place.page)
      return refuse(place, Refused::Kind::cq_arm, Refused::Reason::wrong_page, Refusal::What::cq_arm,
                    queue == nullptr ? Refusal::Why::no_object : Refusal::Why::wrong_page);
    cq_armed(CqArmed{arm});
  });
}

void Doorbell::consume(const DoorbellPlace& place, const EqConsumed& eq) {
  ++counters_.eq_doorbells;
  consumed(eq);
  if (!contexts_.eqs.exists(eq.eqn)) tell(place, Refusal::What::eq_doorbell, Refusal::Why::no_object);
  eq_consumed(EqConsumed{eq});
}

void Doorbell::refuse(const DoorbellPlace& place, Refused::Kind kind, Refused::Reason reason, Refusal::What what,
                      Refusal::Why why) {
  ++(reason == Refused::Reason::wrong_page ? counters_.doorbell_wrong_page : counters_.doorbell_malformed);
  refused({place.page, kind, reason});
  tell(place, what, why);
}

void Doorbell::tell(const DoorbellPlace& place, Refusal::What what, Refusal::Why why) {
  if (!refusal) return;
  const auto& map = personality_.layout.pci;
  const bool of_qp = what == Refusal::What::send_doorbell || what == Refusal::What::blueflame;
  refusal({.what = what,
           .why = why,
           .object = place.number,
           .qpn = of_qp ? place.number : 0,
           .address = map.uar + std::uint64_t{place.page} * map.uar_page_bytes + place.offset});
}

}  // namespace rnicsim::nic
