// SPDX-License-Identifier: Apache-2.0
// An Ethernet that all guests share. Each guest has a port of VMware's vmxnet3, for which stock kernels have a driver.
// A hub in the first guest's QEMU connects the ports.
#pragma once

#include "sim/guest/vm/guest_devices.h"

namespace rnicsim::sim {

class CommonNetwork final : public GuestDevices {
 public:
  // `macs`: the MAC address of each guest's port. `wire`: a connected stream socket with QEMU's framing, which is one
  // more port of the Ethernet; not open: none.
  CommonNetwork(std::vector<std::string> macs, Descriptor wire);

  DeviceArguments arguments(std::size_t guest) override;
  void work(std::vector<pollfd>& watched, std::chrono::milliseconds longest) override;

 private:
  struct Wire {
    Descriptor at_hub, at_guest;
  };
  static Wire make_wire(int type);
  DeviceArguments hub();

  const std::vector<std::string> macs_;
  std::vector<Wire> wires_;  // wires of guest 1 and the following
  Descriptor outside_;
  Descriptor lone_end_;  // for a single guest without a wire: its frames are lost
};

}  // namespace rnicsim::sim
