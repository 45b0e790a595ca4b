// An Ethernet that all guests share: each has a port of VMware's vmxnet3, as stock kernels know it; a hub in the first
// guest's QEMU joins them.
#pragma once

#include "sim/guest/vm/guest_devices.h"

namespace rnicsim::sim {

class CommonNetwork final : public GuestDevices {
 public:
  // `wire`: a connected stream socket, which is one more port of the Ethernet; QEMU's framing.
  explicit CommonNetwork(std::size_t guests, Descriptor wire = {});

  DeviceArguments arguments(std::size_t guest) override;
  void work(std::vector<pollfd>& watched, std::chrono::milliseconds longest) override;

 private:
  struct Wire {
    Descriptor at_hub, at_guest;
  };
  static Wire make_wire(int type);
  DeviceArguments hub();

  std::vector<Wire> wires_;  // of the guests from the second on
  Descriptor outside_;
  Descriptor lone_end_;      // of a guest without others: what it sends is lost
};

}  // namespace rnicsim::sim
