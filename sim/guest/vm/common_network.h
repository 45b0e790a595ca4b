// An Ethernet that all guests share: each has a port of VMware's vmxnet3, as stock kernels know it; a hub in the first
// guest's QEMU joins them.
#pragma once

#include "sim/guest/vm/guest_devices.h"

namespace rnicsim::sim {

class CommonNetwork final : public GuestDevices {
 public:
  // A MAC address for each guest's port. `wire`: a connected stream socket with QEMU's framing, which is one more port
  // of the Ethernet; not open: none.
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
  std::vector<Wire> wires_;  // of the guests from the second on
  Descriptor outside_;
  Descriptor lone_end_;      // of a guest without others: what it sends is lost
};

}  // namespace rnicsim::sim
