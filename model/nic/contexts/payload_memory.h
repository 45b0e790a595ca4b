// SPDX-License-Identifier: Apache-2.0
// Payload in host memory, reached by DMA, or in device memory, which is much faster. Writes of one queue pair still
// land in order: a write to the other memory waits until the earlier writes have landed, and later writes wait behind
// it.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "model/base/fifo.h"
#include "model/nic/contexts/device_memory.h"
#include "model/nic/pcie/dma.h"

namespace rnicsim::nic {

class PayloadMemory : DmaClient {
 public:
  PayloadMemory(Dma& dma, DeviceMemory& device) : dma_(dma), device_(device) {}

 private:
  struct Write {
    Dma::Place place;
    Payload data;
    DmaReply reply;
    Dma::Placement placement;
  };

 public:
  // The order of a queue pair's writes. Must not move; call forget() before its destruction.
  class Order {
    friend PayloadMemory;
    enum class Side : std::uint8_t { host, device, turning };
    Side side = Side::host;
    Duration host_until{};  // time at which the writes to the host have landed
    Duration device_until{};
    std::uint64_t turn = 0;  // number of the switch under way
    Fifo<Write> held{};
  };

  static bool on_device(const Dma::Place& place) { return place.pasid == DeviceMemory::kPlace; }

  void read(const Dma::Place& place, std::uint32_t bytes, const DmaReply& reply, Dma::Sampling sampling) {
    if (on_device(place)) return device_.read(place.address, bytes, reply);
    sampling.payload = true;
    dma_.read(place, bytes, reply, sampling);
  }
  // Writes outside of any queue pair's order.
  void write(const Dma::Place& place, Payload&& data, const DmaReply& reply, Dma::Placement placement) {
    if (on_device(place)) return void(device_.write(place.address, std::move(data), reply, placement.discard));
    dma_.write(place, std::move(data), reply, placement);
  }
  void write(Order& order, const Dma::Place& place, Payload&& data, const DmaReply& reply, Dma::Placement placement) {
    if (order.side != Order::Side::host || on_device(place))
      return write_in_turn(order, {place, std::move(data), reply, placement});
    dma_.write(place, std::move(data), reply, placement);
    order.host_until = dma_.landing();
  }
  // True if all writes to the host are issued; false: a write waits for credits.
  bool issued() const { return dma_.landing() != Agenda::kNever; }
  // For infrequent requests: wraps a closure as a reply.
  DmaReply closure(Dma::Done&& done) { return dma_.closure(std::move(done)); }
  // Cancels writes that have not begun, and replies to them with `denied`.
  void forget(Order& order);
  void reset() { turning_.clear(); }

 private:
  [[gnu::noinline]] void write_in_turn(Order& order, Write&& write);
  void put(Order& order, Write&& write);
  void dma_done(std::uint32_t kind, std::uint64_t turn, AccessResult result, Payload&& data) override;

  Dma& dma_;
  DeviceMemory& device_;
  std::unordered_map<std::uint64_t, Order*> turning_;  // by number of the switch; never iterated
  std::uint64_t turns_ = 0;                            // number of switches so far
};

}  // namespace rnicsim::nic
