// SPDX-License-Identifier: Apache-2.0
// A small IP stack (lwIP) for the simulated hosts: ARP, neighbour discovery, ICMP echo and TCP at their addresses. Each
// NIC of a simulated host has its own interface here, at the frame port beside the NIC. lwIP has one state for the
// process, and runs in the calls of the simulator's thread: it creates no thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model/abi/attach.h"

struct netif;

namespace rnicsim::sim {

class IpStack {
 public:
  using Send = std::function<void(std::span<const std::byte> frame)>;

  IpStack();
  ~IpStack();

  void add(const abi::NetworkInterface& interface, Send send);
  // True for frames to the interface's addresses with TCP, ICMP, ARP or neighbour discovery. All other frames, such as
  // RoCE, belong to the NIC.
  static bool takes(const abi::NetworkInterface& interface, std::span<const std::byte> frame);
  void receive(std::size_t interface, std::span<const std::byte> frame);
  // Runs timers, such as retransmissions, in wall-clock time. Call at least every 100 ms.
  void work();

  std::size_t interfaces() const { return ports_.size(); }
  const abi::NetworkInterface& interface(std::size_t index) const;
  netif& port(std::size_t index);
  // Interface by which a host reaches the address; nullopt: none.
  std::optional<std::size_t> way(std::uint32_t host, const abi::NetAddress& to) const;

 private:
  struct Port;
  std::vector<std::unique_ptr<Port>> ports_;
};

}  // namespace rnicsim::sim
