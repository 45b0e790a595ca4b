// The devices of the guests of a simulated system: a NIC of the system each, by QEMU's x-pci-proxy-dev, and a port of
// the common network with the MAC address and the host's number of that NIC.
#pragma once

#include "sim/guest/guest_loop.h"
#include "sim/guest/vm/common_network.h"
#include "sim/guest/vm/guest_devices.h"

namespace rnicsim::sim {

class SimulatedDevices final : public GuestDevices {
 public:
  // Construct before the simulation starts; starts the simulation. Guest N is host N of the system.
  SimulatedDevices(System& system, std::size_t guests);

  DeviceArguments arguments(std::size_t guest) override;
  void work(std::vector<pollfd>& watched, std::chrono::milliseconds longest) override;
  void expect_end() override;
  bool have_stopped() const override { return loop_.has_stopped(); }
  std::string state() const override { return loop_.state(); }

 private:
  static std::vector<std::string> macs_of(System& system, std::size_t guests);

  CommonNetwork network_;
  GuestLoop loop_;
};

}  // namespace rnicsim::sim
