#include "model/nic/doorbell.h"

#include <cstring>

#include "model/abi/big_endian.h"

namespace rnicsim::nic {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::uint32_t kKernelPage = 0;

using Kind = DoorbellRefused::Kind;
using Reason = DoorbellRefused::Reason;

std::uint32_t word(const UarWrite& write, std::size_t index) {
  return abi::load_be<std::uint32_t>(write.data.data() + 4 * index);
}

}  // namespace

void Doorbell::write(const UarWrite& write) {
  using namespace abi::uar;
  if (write.offset == kBlueFlame0 || write.offset == kBlueFlame1) return write_blueflame(write);
  const bool pair = write.data.size() == 8;
  if (pair && write.offset == kSendDoorbell) return write_send(write);
  if (pair && write.offset == kCqArm) return write_cq_arm(write);
  if (pair && write.offset == kEqDoorbell && write.page == kKernelPage) return write_eq(write);
  refuse(write.page, Kind::unknown, Reason::malformed);
}

void Doorbell::write_send(const UarWrite& write) {
  ++counters_.send_doorbells;
  ring(write.page, {{word(write, 0) & 0xffffff}, static_cast<std::uint16_t>(word(write, 1)), {}});
}

void Doorbell::write_blueflame(const UarWrite& write) {
  ++counters_.blueflame_doorbells;
  const auto size = write.data.size();
  abi::ControlSegment control;
  if (size == 0 || size % kLine != 0 || size > abi::uar::kBlueFlameBytes)
    return refuse(write.page, Kind::blueflame, Reason::malformed);
  std::memcpy(static_cast<void*>(&control), write.data.data(), sizeof(control));
  const std::uint32_t bytes = control.segments * 16u;
  if (bytes == 0 || bytes > size) return refuse(write.page, Kind::blueflame, Reason::malformed);
  const auto blocks = (bytes + abi::kSendBlock - 1) / abi::kSendBlock;
  const auto producer = static_cast<std::uint16_t>(control.wqe_index + blocks);
  const auto wqe = write.data.first(std::min<std::size_t>(blocks * abi::kSendBlock, size));
  ring(write.page, {{control.qpn_flags >> 8}, producer, Payload::copy_of(wqe)});
}

void Doorbell::ring(std::uint32_t page, SendDoorbell doorbell) {
  const auto* qp = contexts_.qps.find(doorbell.qpn.value);
  if (qp == nullptr || qp->uar_page != page)
    return refuse(page, doorbell.wqe.empty() ? Kind::send : Kind::blueflame, Reason::wrong_page);
  if (rung) rung({page, doorbell.qpn, doorbell.producer, static_cast<std::uint32_t>(doorbell.wqe.size())});
  send(std::move(doorbell));
}

void Doorbell::write_cq_arm(const UarWrite& write) {
  ++counters_.cq_arms;
  const auto cqn_flags = word(write, 0);
  const auto cqn = cqn_flags >> 8;
  const CqArmed arm{cqn, (cqn_flags & abi::CqArm::kSolicitedOnly) != 0, word(write, 1) & kCounterMask};
  armed(arm);
  contexts_.cqs.lookup(cqn, [this, arm, page = write.page](CompletionQueue* queue) {
    if (queue == nullptr || queue->uar_page != page) return refuse(page, Kind::cq_arm, Reason::wrong_page);
    cq_armed(CqArmed{arm});
  });
}

void Doorbell::write_eq(const UarWrite& write) {
  ++counters_.eq_doorbells;
  const EqConsumed eq{word(write, 0), word(write, 1) & kCounterMask};
  consumed(eq);
  eq_consumed(EqConsumed{eq});
}

void Doorbell::refuse(std::uint32_t page, Kind kind, Reason reason) {
  ++(reason == Reason::wrong_page ? counters_.doorbell_wrong_page : counters_.doorbell_malformed);
  refused({page, kind, reason});
}

}  // namespace rnicsim::nic
