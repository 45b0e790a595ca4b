// SPDX-License-Identifier: Apache-2.0
// A page of doorbells. Its writes are posted: announced data must be published (dma.h) before the write.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace rnicsim::provider {

// Posts a write to BAR0.
using Mmio = std::function<void(std::uint32_t offset, std::span<const std::byte> data)>;

class Uar {
 public:
  Uar(Mmio mmio, std::uint32_t page) : mmio_(std::move(mmio)), page_(page) {}

  std::uint32_t page() const { return page_; }

  void ring_send(std::uint32_t qpn, std::uint32_t producer);
  // `wqe`: whole blocks, at most abi::uar::kBlueFlameBytes. The two buffers are used alternately, so that the device
  // can read one while the CPU fills the other.
  void blue_flame(std::span<const std::byte> wqe);
  void arm_cq(std::uint32_t cqn, bool solicited_only, std::uint32_t consumer);
  void ring_eq(std::uint32_t eqn, std::uint32_t consumer);

 private:
  void write(std::uint32_t offset, std::span<const std::byte> data);

  Mmio mmio_;
  std::uint32_t page_;
  std::atomic<std::uint32_t> blue_flames_{0};  // atomic, since the queues of a process share the page
};

}  // namespace rnicsim::provider
