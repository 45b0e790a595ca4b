// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/transactor/function_server.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "sim/guest/transactor/qemu_proxy.h"
#include "sim/guest/transactor/vfio_user.h"

namespace rnicsim::sim {

FunctionServer::FunctionServer() { ::signal(SIGPIPE, SIG_IGN); }

GuestPort& FunctionServer::add(const GuestFunction& function, const GuestSocket& socket) {
  places_.push_back(std::unique_ptr<Place>(new Place{socket, PathListener(socket.path), loop_.add(function)}));
  return places_.back()->guest.port();
}

void FunctionServer::turn(std::chrono::nanoseconds longest, Duration limit) {
  listening_.clear();
  for (const auto& place : places_) listening_.push_back({place->listener.descriptor(), POLLIN, 0});
  loop_.turn(listening_, longest, limit);
  for (std::size_t i = 0; i < places_.size(); ++i)
    if (listening_[i].revents != 0) take_client(*places_[i]);
}

void FunctionServer::take_client(Place& place) {
  auto socket = place.listener.accept();
  if (!socket) return;
  if (place.guest.is_connected()) {
    auto& port = place.guest.port();
    port.say(fmt::format("{}: a second client tried to connect to {}: it is refused, because a client is connected",
                         port.label(), place.socket.path));
    return;
  }
  had_clients_ = true;
  if (place.socket.protocol == GuestProtocol::qemu)
    place.guest.connect<QemuProxy>(std::move(socket), place.socket.qtest_path);
  else
    place.guest.connect<VfioUser>(std::move(socket));
}

bool FunctionServer::has_clients() const {
  return std::ranges::any_of(places_, [](const auto& place) { return place->guest.is_connected(); });
}

void FunctionServer::disconnect() {
  for (auto& place : places_) place->guest.disconnect();
}

std::string FunctionServer::state() const {
  std::string text;
  for (const auto& place : places_) text += place->guest.state();
  return text;
}

}  // namespace rnicsim::sim
