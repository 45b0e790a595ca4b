// Interrupts for QEMU 7.2: its x-pci-proxy-dev passes INTx alone, and that with KVM only. The message of an MSI-X
// vector is written to the machine's memory by the socket for QEMU's own tests (-qtest), which is where the interrupt
// controller takes it from.
#pragma once

#include <poll.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sim/descriptor.h"

namespace rnicsim::sim {

class GuestPort;

class Qtest {
 public:
  // `path`: where QEMU listens; empty: nowhere, and interrupts are lost.
  Qtest(GuestPort& port, std::string path) : port_(port), path_(std::move(path)) {}

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
