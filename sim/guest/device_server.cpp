#include "sim/guest/device_server.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "model/base/kernel.h"
#include "model/nic/nic.h"
#include "sim/adapter.h"
#include "sim/config/host_record.h"
#include "sim/engine_choice.h"
#include "sim/guest/guest_connection.h"
#include "sim/guest/qemu_proxy.h"
#include "sim/guest/vfio_user.h"
#include "sim/host.h"
#include "sim/progress_line.h"
#include "sim/system.h"

namespace rnicsim::sim {
namespace {

// The longest wait between two checks of limits and signals.
constexpr std::chrono::nanoseconds kLongestWait = std::chrono::milliseconds(100);

const char* name_of(GuestProtocol protocol) {
  return protocol == GuestProtocol::qemu ? "x-pci-proxy" : "vfio-user";
}

}  // namespace

struct DeviceServer::Guest {
  Guest(const GuestSocket& socket, Adapter& adapter)
      : socket(socket), port(fmt::format("guest{}", socket.host).c_str(), adapter), listener(socket.path) {}

  // Switches find a host by this MAC address: the virtual machine has to use it behind a switch.
  std::string description(const Adapter& adapter) const {
    return fmt::format("{} (MAC {}, {}): {} at {}", port.label(), mac_text(adapter.interface()),
                       ipv4_text(adapter.interface()), name_of(socket.protocol), socket.path);
  }

  const GuestSocket socket;
  GuestPort port;
  const PathListener listener;
  std::unique_ptr<GuestClient> client;  // nullptr: none is connected
};

DeviceServer::DeviceServer(System& system, const std::vector<GuestSocket>& sockets, const Limits& limits, bool once)
    : system_(system), once_(once), watch_(limits), snapshots_(system, [](Snapshot&) {}) {
  ::signal(SIGPIPE, SIG_IGN);
  for (const auto& socket : sockets)
    guests_.push_back(std::make_unique<Guest>(socket, *system.host(socket.host).adapters().front()));
}

DeviceServer::~DeviceServer() = default;

int DeviceServer::serve() {
  sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
  system_.start();
  for (const auto& guest : guests_)
    fmt::print("rnicsim: {}\n", guest->description(*system_.host(guest->socket.host).adapters().front()));
  std::fflush(stdout);
  const Duration limit = watch_.limits().simulated.value_or(Agenda::kNever);
  while (!ended()) {
    const auto idle = pace_.advance(limit);
    wait(idle);
    for (auto& guest : guests_) {
      if (guest->client) serve_client(*guest);
      take_clients(*guest);
    }
  }
  for (auto& guest : guests_) guest->client.reset();
  progress_line::erase();
  return status_;
}

bool DeviceServer::ended() {
  tell_outside();
  if (const auto end = watch_.end())
    end_for(*end);
  else if (watch_.limits().simulated && now() >= *watch_.limits().simulated)
    end_for(at_simulated_limit(*watch_.limits().simulated));
  else if (!system_.engines().mismatch().empty() || sc_core::sc_get_status() == sc_core::SC_STOPPED)
    ending_ = true;
  else if (once_ && had_clients_ &&
           std::ranges::none_of(guests_, [](const auto& guest) { return guest->client != nullptr; }))
    ending_ = true;
  return ending_;
}

// A signal is the regular end.
void DeviceServer::end_for(const Watch::End& end) {
  ending_ = true;
  if (end.status != kLimitStatus) return;
  warnings_.push_back(end.why + '\n' + state());
  status_ = end.status;
}

void DeviceServer::wait(std::optional<std::chrono::nanoseconds> longest) {
  watched_.clear();
  for (const auto& guest : guests_) {
    watched_.push_back({guest->listener.descriptor(), POLLIN, 0});
    if (guest->client) guest->client->watch(watched_);
  }
  const auto span = std::min(longest.value_or(kLongestWait), kLongestWait);
  const timespec time{0, static_cast<long>(span.count())};
  if (::ppoll(watched_.data(), static_cast<nfds_t>(watched_.size()), &time, nullptr) > 0)
    pace_.catch_up(watch_.limits().simulated.value_or(Agenda::kNever));
}

void DeviceServer::take_clients(Guest& guest) {
  auto socket = guest.listener.accept();
  if (!socket) return;
  if (guest.client) {
    guest.port.say(fmt::format("{}: another client came to {}, where one is connected: it is turned away",
                               guest.port.label(), guest.socket.path));
    return;
  }
  had_clients_ = true;
  guest.port.clear();
  if (guest.socket.protocol == GuestProtocol::qemu)
    guest.client = std::make_unique<QemuProxy>(guest.port, std::move(socket), guest.socket.qtest_path);
  else
    guest.client = std::make_unique<VfioUser>(guest.port, std::move(socket));
}

void DeviceServer::serve_client(Guest& guest) try {
  guest.client->serve();
} catch (const ConnectionLost& lost) {
  lose_client(guest, lost.what());
}

void DeviceServer::lose_client(Guest& guest, const std::string& why) {
  guest.client.reset();
  guest.port.clear();
  guest.port.say(fmt::format("{}: {}; the device is reset", guest.port.label(), why));
}

void DeviceServer::tell_outside() {
  if (watch_.report_wanted()) {
    progress_line::erase();
    fmt::print(stderr, "rnicsim: simulated time {}\n{}", to_string(now()), state());
  }
  snapshots_.serve();
}

// Counters of each guest's port, and its queue pairs.
std::string DeviceServer::state() const {
  std::string text;
  for (const auto& guest : guests_) {
    const auto& counters = guest->port.counters();
    text += fmt::format("  {}: {}, {} BAR accesses, {} of configuration space, {} interrupts, {} DMA requests "
                        "refused\n",
                        guest->port.label(), guest->client ? "connected" : "nobody is connected", counters.bar_accesses,
                        counters.config_accesses, counters.interrupts, counters.dma_refused);
    system_.host(guest->socket.host).adapters().front()->nic().describe_state(text);
  }
  return text;
}

}  // namespace rnicsim::sim
