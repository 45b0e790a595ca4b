#include "sim/guest/vm/simulated_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/adapter.h"
#include "sim/config/host_record.h"
#include "sim/guest/qemu_proxy.h"
#include "sim/guest/vm/socket_ends.h"
#include "sim/host.h"
#include "sim/system.h"

namespace rnicsim::sim {

std::vector<std::string> SimulatedDevices::macs_of(System& system, std::size_t guests) {
  std::vector<std::string> macs;
  for (std::uint32_t host = 0; host < guests; ++host)
    macs.push_back(mac_text(system.host(host).adapters().front()->interface()));
  return macs;
}

SimulatedDevices::SimulatedDevices(System& system, std::size_t guests)
    : network_(macs_of(system, guests)), loop_(system) {
  for (std::uint32_t host = 0; host < guests; ++host) loop_.add(host);
  loop_.start();
}

// Interrupts go by the protocol of QEMU's own tests (qtest.h), on a socket of their own.
DeviceArguments SimulatedDevices::arguments(std::size_t guest) {
  DeviceArguments result = network_.arguments(guest);
  SocketEnds proxy = make_socket_ends(), qtest = make_socket_ends();
  result.words.insert(result.words.end(),
                      {"-device", fmt::format("x-pci-proxy-dev,id=nic,fd={}", proxy.there.get()), "-chardev",
                       fmt::format("socket,id=interrupts,fd={}", qtest.there.get()), "-object",
                       "qtest,id=qtest,chardev=interrupts,log=/dev/null"});
  result.inherited.push_back(std::move(proxy.there));
  result.inherited.push_back(std::move(qtest.there));
  loop_.guests()[guest]->connect<QemuProxy>(std::move(proxy.here), std::move(qtest.here));
  return result;
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
    if (left <= Clock::duration{} || loop_.has_stopped() || std::ranges::any_of(watched, is_ready)) return;
  }
}

}  // namespace rnicsim::sim
