// SPDX-License-Identifier: Apache-2.0
#include "verbs/provider/uar.h"

#include "model/abi/device.h"
#include "model/abi/queue.h"
#include "verbs/provider/dma.h"

namespace rnicsim::provider {

void Uar::ring_send(std::uint32_t qpn, std::uint32_t producer) {
  const abi::SendDoorbell doorbell{.qpn = qpn, .producer = producer};
  write(abi::uar::kSendDoorbell, bytes_of(doorbell));
}

void Uar::blue_flame(std::span<const std::byte> wqe) {
  const bool second = blue_flames_.fetch_add(1, std::memory_order_relaxed) & 1;
  write(second ? abi::uar::kBlueFlame1 : abi::uar::kBlueFlame0, wqe);
}

void Uar::arm_cq(std::uint32_t cqn, bool solicited_only, std::uint32_t consumer) {
  const abi::CqArm doorbell{.cqn_flags = cqn << 8 | (solicited_only ? abi::CqArm::kSolicitedOnly : 0),
                            .consumer = consumer};
  write(abi::uar::kCqArm, bytes_of(doorbell));
}

void Uar::ring_eq(std::uint32_t eqn, std::uint32_t consumer) {
  const abi::EqDoorbell doorbell{.eqn = eqn, .consumer = consumer};
  write(abi::uar::kEqDoorbell, bytes_of(doorbell));
}

void Uar::write(std::uint32_t offset, std::span<const std::byte> data) {
  mmio_(abi::kUarBase + page_ * abi::kUarPageSize + offset, data);
}

}  // namespace rnicsim::provider
