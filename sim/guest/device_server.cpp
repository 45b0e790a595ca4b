#include "sim/guest/device_server.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "model/base/kernel.h"
#include "sim/adapter.h"
#include "sim/config/host_record.h"
#include "sim/guest/qemu_proxy.h"
#include "sim/guest/vfio_user.h"
#include "sim/progress_line.h"
#include "sim/system.h"

namespace rnicsim::sim {
namespace {

// The longest wait between two checks of limits and signals.
constexpr std::chrono::nanoseconds kLongestWait = std::chrono::milliseconds(100);

// Switches find a host by this MAC address: the virtual machine has to use the address behind a switch.
std::string description(const GuestSocket& socket, const Adapter& adapter) {
  return fmt::format("{} (MAC {}, {}): {} at {}", adapter.label(), mac_text(adapter.interface()),
                     ipv4_text(adapter.interface()),
                     socket.protocol == GuestProtocol::qemu ? "x-pci-proxy" : "vfio-user", socket.path);
}

}  // namespace

DeviceServer::DeviceServer(System& system, const std::vector<GuestSocket>& sockets, const Limits& limits, bool once)
    : once_(once), watch_(limits), loop_(system) {
  ::signal(SIGPIPE, SIG_IGN);
  for (const auto& socket : sockets)
    places_.push_back(std::unique_ptr<Place>(new Place{socket, PathListener(socket.path), loop_.add(socket.host)}));
}

Duration DeviceServer::limit() const { return watch_.limits().simulated.value_or(Agenda::kNever); }

int DeviceServer::serve() {
  loop_.start();
  for (const auto& place : places_) fmt::print("rnicsim: {}\n", description(place->socket, place->guest.adapter()));
  std::fflush(stdout);
  while (!ended()) {
    listening_.clear();
    for (const auto& place : places_) listening_.push_back({place->listener.descriptor(), POLLIN, 0});
    loop_.turn(listening_, kLongestWait, limit());
    for (auto& place : places_) take_client(*place);
  }
  for (auto& place : places_) place->guest.disconnect();
  progress_line::erase();
  return status_;
}

bool DeviceServer::ended() {
  if (watch_.report_wanted()) {
    progress_line::erase();
    fmt::print(stderr, "rnicsim: simulated time {}\n{}", to_string(now()), loop_.state());
  }
  if (const auto end = watch_.end())
    end_for(*end);
  else if (watch_.limits().simulated && now() >= limit())
    end_for(at_simulated_limit(limit()));
  else if (loop_.has_stopped())
    ending_ = true;
  else if (once_ && had_clients_ &&
           std::ranges::none_of(places_, [](const auto& place) { return place->guest.is_connected(); }))
    ending_ = true;
  return ending_;
}

// A signal is the regular end.
void DeviceServer::end_for(const Watch::End& end) {
  ending_ = true;
  if (end.status != kLimitStatus) return;
  warnings_.push_back(end.why + '\n' + loop_.state());
  status_ = end.status;
}

void DeviceServer::take_client(Place& place) {
  auto socket = place.listener.accept();
  if (!socket) return;
  if (place.guest.is_connected()) {
    auto& port = place.guest.port();
    port.say(fmt::format("{}: another client came to {}, where one is connected: it is turned away", port.label(),
                         place.socket.path));
    return;
  }
  had_clients_ = true;
  if (place.socket.protocol == GuestProtocol::qemu)
    place.guest.connect<QemuProxy>(std::move(socket), place.socket.qtest_path);
  else
    place.guest.connect<VfioUser>(std::move(socket));
}

}  // namespace rnicsim::sim
