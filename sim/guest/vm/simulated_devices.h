// SPDX-License-Identifier: Apache-2.0
// Devices of the guests of a simulated system. Each guest has a NIC of the system, by QEMU's x-pci-proxy-dev, and a
// port of the common network with the MAC address of that NIC.
#pragma once

#include <map>
#include <set>
#include <string>

#include "sim/guest/transactor/guest_loop.h"
#include "sim/guest/vm/common_network.h"
#include "sim/guest/vm/guest_devices.h"
#include "sim/snapshot_server.h"

namespace rnicsim::sim {

// A user's device, which another process serves by QEMU's x-pci-proxy.
struct UserDevice {
  std::string path;        // the socket at which that process listens
  std::string qtest_path;  // the socket at which QEMU is to listen for the device's interrupts
};

class SimulatedDevices final : public GuestDevices {
 public:
  // Construct before the simulation starts; starts the simulation. Guest N is host N of the system. A guest with a
  // user's device has this device in place of the NIC. `wire`: as of CommonNetwork.
  SimulatedDevices(System& system, std::size_t guests, std::map<std::size_t, UserDevice> user_devices, Descriptor wire);

  DeviceArguments arguments(std::size_t guest) override;
  void work(std::vector<pollfd>& watched, std::chrono::milliseconds longest) override;
  void expect_end() override;
  bool have_stopped() const override;
  std::string state() const override;

 private:
  void add_nic(std::size_t guest, DeviceArguments& arguments);
  static void add_user_device(const UserDevice& device, DeviceArguments& arguments);
  static std::vector<std::string> macs_of(System& system, std::size_t guests);

  System& system_;
  CommonNetwork network_;
  const std::map<std::size_t, UserDevice> user_devices_;
  SnapshotServer snapshots_;
  GuestLoop loop_;
  std::set<std::uint32_t> hosts_;
};

}  // namespace rnicsim::sim
