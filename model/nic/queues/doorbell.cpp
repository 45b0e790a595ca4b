#include "model/nic/queues/doorbell.h"

namespace rnicsim::nic {
namespace {

constexpr std::uint32_t kKernelPage = 0;

}  // namespace

void Doorbell::write(const UarWrite& write) {
  const auto said = personality_.decode_doorbell(write.offset, write.data);
  switch (said.kind) {
    case DoorbellWrite::Kind::send:
      ++counters_.send_doorbells;
      return ring(write.page, {{said.number}, static_cast<std::uint16_t>(said.position), {}});
    case DoorbellWrite::Kind::blueflame:
      ++counters_.blueflame_doorbells;
      if (!said.sound) return refuse(write.page, Refused::Kind::blueflame, Refused::Reason::malformed);
      return ring(write.page, {{said.number}, static_cast<std::uint16_t>(said.position), Payload::copy_of(said.wqe)});
    case DoorbellWrite::Kind::cq_arm:
      return arm(write.page, {said.number, said.solicited_only, said.position});
    case DoorbellWrite::Kind::eq:
      if (write.page != kKernelPage) break;
      return consume({said.number, said.position});
    case DoorbellWrite::Kind::unknown: break;
  }
  refuse(write.page, Refused::Kind::unknown, Refused::Reason::malformed);
}

void Doorbell::ring(std::uint32_t page, SendDoorbell&& doorbell) {
  const auto* qp = contexts_.qps.find(doorbell.qpn.value);
  if (qp == nullptr || qp->uar_page != page)
    return refuse(page, doorbell.wqe.empty() ? Refused::Kind::send : Refused::Kind::blueflame,
                  Refused::Reason::wrong_page);
  if (rung) rung({page, doorbell.qpn, doorbell.producer, static_cast<std::uint32_t>(doorbell.wqe.size())});
  send(std::move(doorbell));
}

void Doorbell::arm(std::uint32_t page, const CqArmed& arm) {
  ++counters_.cq_arms;
  armed(arm);
  contexts_.cqs.lookup(arm.cqn, [this, arm, page](CompletionQueue* queue) {
    if (queue == nullptr || queue->uar_page != page)
      return refuse(page, Refused::Kind::cq_arm, Refused::Reason::wrong_page);
    cq_armed(CqArmed{arm});
  });
}

void Doorbell::consume(const EqConsumed& eq) {
  ++counters_.eq_doorbells;
  consumed(eq);
  eq_consumed(EqConsumed{eq});
}

void Doorbell::refuse(std::uint32_t page, Refused::Kind kind, Refused::Reason reason) {
  ++(reason == Refused::Reason::wrong_page ? counters_.doorbell_wrong_page : counters_.doorbell_malformed);
  refused({page, kind, reason});
}

}  // namespace rnicsim::nic
