// SPDX-License-Identifier: Apache-2.0
// Interrupts for QEMU 7.2. Its x-pci-proxy-dev can pass INTx only, and only with KVM. The socket of QEMU's own tests
// (-qtest) can write to guest addresses: a write to the address of an MSI-X message raises the interrupt.
#pragma once

#include <poll.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/os/descriptor.h"

namespace rnicsim::sim {

class GuestPort;

class Qtest {
 public:
  // `path`: the socket at which QEMU listens; empty: none, interrupts are lost.
  Qtest(GuestPort& port, std::string path) : port_(port), path_(std::move(path)) {}
  // `socket`: connected to QEMU.
  Qtest(GuestPort& port, Descriptor socket) : port_(port), socket_(std::move(socket)) {}

  void interrupt(std::uint64_t address, std::uint32_t data);
  void watch(std::vector<pollfd>& watched) const;
  void serve();

 private:
  bool connected();
  void flush();
  void lose(const std::string& why);

  GuestPort& port_;
  const std::string path_;
  Descriptor socket_;
  std::string outgoing_;
  std::string incoming_;
  bool told_ = false;
};

}  // namespace rnicsim::sim
