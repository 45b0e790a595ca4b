// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/vm/simulated_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "sim/adapter.h"
#include "sim/config/config_error.h"
#include "sim/config/host_record.h"
#include "sim/guest/nic_function.h"
#include "sim/guest/transactor/path_socket.h"
#include "sim/guest/transactor/qemu_proxy.h"
#include "sim/guest/vm/socket_ends.h"
#include "sim/system.h"

namespace rnicsim::sim {
namespace {

void add_words(const Descriptor& proxy, const std::string& interrupts, DeviceArguments& arguments) {
  arguments.words.insert(arguments.words.end(), {"-device", fmt::format("x-pci-proxy-dev,id=nic,fd={}", proxy.get()),
                                                 "-chardev", fmt::format("socket,id=interrupts,{}", interrupts),
                                                 "-object", "qtest,id=qtest,chardev=interrupts,log=/dev/null"});
}

}  // namespace

std::vector<std::string> SimulatedDevices::macs_of(System& system, std::size_t guests) {
  std::vector<std::string> macs;
  for (std::uint32_t host = 0; host < guests; ++host) macs.push_back(mac_text(guest_adapter(system, host).interface()));
  return macs;
}

SimulatedDevices::SimulatedDevices(System& system, std::size_t guests, std::map<std::size_t, UserDevice> user_devices,
                                   Descriptor wire)
    : system_(system),
      network_(macs_of(system, guests), std::move(wire)),
      user_devices_(std::move(user_devices)),
      snapshots_(system, [](Snapshot&) {}) {
  for (std::uint32_t host = 0; host < guests; ++host) {
    auto& adapter = guest_adapter(system, host);
    connect_to_guest(adapter, loop_.add(nic_function(adapter)).port());
    hosts_.insert(host);
  }
  start_beside_guests(system);
}

DeviceArguments SimulatedDevices::arguments(std::size_t guest) {
  DeviceArguments result = network_.arguments(guest);
  const auto own = user_devices_.find(guest);
  if (own != user_devices_.end())
    add_user_device(own->second, result);
  else
    add_nic(guest, result);
  return result;
}

// Interrupts use the protocol of QEMU's own tests (qtest.h), on a separate socket.
void SimulatedDevices::add_nic(std::size_t guest, DeviceArguments& arguments) {
  SocketEnds proxy = make_socket_ends(), qtest = make_socket_ends();
  add_words(proxy.there, fmt::format("fd={}", qtest.there.get()), arguments);
  arguments.inherited.push_back(std::move(proxy.there));
  arguments.inherited.push_back(std::move(qtest.there));
  loop_.guests()[guest]->connect<QemuProxy>(std::move(proxy.here), std::move(qtest.here));
}

void SimulatedDevices::add_user_device(const UserDevice& device, DeviceArguments& arguments) {
  Descriptor proxy = connect_to_path(device.path);
  if (!proxy) throw ConfigError(fmt::format("--device: {}: {}", shown(device.path), std::strerror(errno)));
  add_words(proxy, fmt::format("path={},server=on,wait=off", device.qtest_path), arguments);
  arguments.inherited.push_back(std::move(proxy));
}

void SimulatedDevices::expect_end() {
  for (const auto& guest : loop_.guests()) guest->port().say = [](const std::string&) {};
}

void SimulatedDevices::work(std::vector<pollfd>& watched, std::chrono::milliseconds longest) {
  using Clock = std::chrono::steady_clock;
  const auto is_ready = [](const pollfd& one) { return one.revents != 0; };
  for (const auto until = Clock::now() + longest;;) {
    const auto left = until - Clock::now();
    loop_.turn(watched, std::max(left, Clock::duration{}));
    snapshots_.serve();
    if (left <= Clock::duration{} || have_stopped() || std::ranges::any_of(watched, is_ready)) return;
  }
}

bool SimulatedDevices::have_stopped() const { return has_stopped(system_); }

std::string SimulatedDevices::state() const {
  std::string text;
  for (const auto& guest : loop_.guests()) text += guest->state();
  return text + nic_states(system_, hosts_);
}

}  // namespace rnicsim::sim
