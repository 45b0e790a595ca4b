// Where payload is: in the host's memory, reached by DMA, or in the device's own, which is much faster. The writes of
// one queue pair land in order all the same: one that goes to the other memory than those before it waits until they
// have landed, and what is behind it waits, too.
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
  // What the writes of a queue pair must not pass. It stays where it is, and is forgotten before it goes.
  class Order {
    friend PayloadMemory;
    enum class Side : std::uint8_t { host, device, turning };
    Side side = Side::host;
    Duration host_until{};                   // its writes there have landed by then
    Duration device_until{};
    std::uint64_t turn = 0;                  // the number of that under way
    Fifo<Write> held{};
  };

  static bool on_device(const Dma::Place& place) { return place.pasid == DeviceMemory::kPlace; }

  void read(const Dma::Place& place, std::uint32_t bytes, const DmaReply& reply, Dma::Sampling sampling) {
    if (on_device(place)) return device_.read(place.address, bytes, reply);
    sampling.payload = true;
    dma_.read(place, bytes, reply, sampling);
  }
  // By itself, in no order but that of its memory.
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
  // All writes to the host are on their way: none waits for credits.
  bool issued() const { return dma_.landing() != Agenda::kNever; }
  // For who asks seldom: the reply is a call.
  DmaReply closure(Dma::Done&& done) { return dma_.closure(std::move(done)); }
  // What of it has not begun is told that it never will.
  void forget(Order& order);
  void reset() { turning_.clear(); }

 private:
  [[gnu::noinline]] void write_in_turn(Order& order, Write&& write);
  void put(Order& order, Write&& write);
  void dma_done(std::uint32_t kind, std::uint64_t turn, AccessResult result, Payload&& data) override;

  Dma& dma_;
  DeviceMemory& device_;
  std::unordered_map<std::uint64_t, Order*> turning_;  // by the turn's number; never iterated
  std::uint64_t turns_ = 0;                            // ever
};

}  // namespace rnicsim::nic
