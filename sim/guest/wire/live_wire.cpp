// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/wire/live_wire.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include "model/base/frame.h"
#include "model/base/payload.h"
#include "model/fabric/frame_port.h"
#include "sim/adapter.h"
#include "sim/adapter_counters.h"
#include "sim/config/config.h"
#include "sim/config/config_error.h"
#include "sim/guest/nic_function.h"
#include "sim/guest/transactor/guest_port.h"
#include "sim/guest/wire/tap_line.h"
#include "sim/guest/wire/unix_line.h"
#include "sim/simulated_host.h"
#include "sim/system.h"

namespace rnicsim::sim {
namespace {

// Interval of the checks of TCP's timers.
constexpr std::chrono::milliseconds kTimers{5};

std::unique_ptr<WireLine> make_line(const WireChoice& choice, WireNotices& notices) {
  if (choice.kind == WireChoice::Kind::tap) return std::make_unique<TapLine>(choice.place, notices);
  const auto role = choice.kind == WireChoice::Kind::listen ? UnixLine::Role::listen : UnixLine::Role::connect;
  return std::make_unique<UnixLine>(choice.place, role, notices);
}

}  // namespace

struct LiveWire::Wire {
  Wire(Adapter& adapter, fabric::FramePort& port, const WireChoice& choice, const WireNotices::Say& say)
      : host(adapter.interface().host),
        idle_nic(fmt::format("outside{}", host).c_str(), nic_function(adapter)),
        notices(adapter.interface().name, say),
        wire_port(adapter.interface(), port, make_line(choice, notices), notices) {
    connect_to_guest(adapter, idle_nic);
  }

  const std::uint32_t host;
  GuestPort idle_nic;  // NIC of the topology; it has no driver
  WireNotices notices;
  WirePort wire_port;
};

LiveWire::LiveWire(System& system, const std::vector<WireChoice>& wires, const WireNotices::Say& say)
    : system_(system) {
  ::signal(SIGPIPE, SIG_IGN);
  std::vector<abi::NetworkInterface> outside;
  for (const auto& choice : wires) {
    add_wire(choice, say);
    outside.push_back(system.config().topology.interfaces[choice.host]);
  }
  gateway_ = std::make_unique<TcpGateway>(stack_, std::move(outside));
  for (std::size_t i = 0; i < system.adapters(); ++i) add_station(i);
}

LiveWire::~LiveWire() = default;

void LiveWire::add_wire(const WireChoice& choice, const WireNotices::Say& say) {
  auto* port = system_.frame_port(choice.host);
  auto& adapter = *system_.host(choice.host).adapters().front();
  if (port == nullptr) throw ConfigError(fmt::format("--wire: {} has no cable", adapter.label()));
  wires_.push_back(std::make_unique<Wire>(adapter, *port, choice, say));
}

// Adds the IP stack's interface beside the NIC of a simulated host. Frames that arrive as bytes are written(); a frame
// without written headers is a RoCE packet of a NIC.
void LiveWire::add_station(std::size_t adapter) {
  const auto& interface = system_.adapter(adapter).interface();
  auto* port = system_.frame_port(adapter);
  if (port == nullptr || has(interface.host)) return;
  const auto index = stack_.interfaces();
  stack_.add(interface, [port](std::span<const std::byte> bytes) { port->send(Frame::of(Payload::copy_of(bytes))); });
  port->takes = [interface](const Frame& frame) {
    return frame.written() && IpStack::takes(interface, frame.header_span());
  };
  port->arrived = [this, index](const Frame& frame) {
    std::vector<std::byte> bytes;
    frame.append_to(bytes);
    stack_.receive(index, bytes);
  };
}

bool LiveWire::has(std::uint32_t host) const {
  return std::ranges::any_of(wires_, [host](const auto& wire) { return wire->host == host; });
}

void LiveWire::listens(std::uint32_t host, const abi::NetAddress& local, bool v6_only) {
  if (!has(host)) gateway_->listens(host, local, v6_only);
}

void LiveWire::listens_no_more(std::uint32_t host, const abi::NetAddress& local) {
  if (!has(host)) gateway_->listens_no_more(host, local);
}

void LiveWire::connect(std::uint32_t host, std::uint16_t port, const abi::NetAddress& to,
                       std::function<void(int error)> answered) {
  gateway_->connect(host, port, to, std::move(answered));
}

void LiveWire::watch(std::vector<pollfd>& watched) const {
  for (const auto& wire : wires_) wire->wire_port.watch(watched);
  gateway_->watch(watched);
}

// Called at each step of the simulation. If no timer is due, a single poll() finds out whether there is work.
void LiveWire::work() {
  watched_.clear();
  watch(watched_);
  const auto present = Clock::now();
  const bool due = present - worked_ >= kTimers;
  if (!due && ::poll(watched_.data(), static_cast<nfds_t>(watched_.size()), 0) <= 0) return;
  for (const auto& wire : wires_) wire->wire_port.work();
  gateway_->work();
  if (!due) return;
  stack_.work();
  worked_ = present;
}

bool LiveWire::has_outstanding() const {
  return gateway_->has_outstanding() ||
         std::ranges::any_of(wires_, [](const auto& wire) { return wire->wire_port.has_outstanding(); });
}

std::vector<std::string> LiveWire::report() const {
  std::vector<std::string> lines{"runs in real time because of a peer outside of the simulation: another run differs"};
  for (const auto& wire : wires_) {
    const auto& port = wire->wire_port;
    const auto mac = port.peer_mac() ? fmt::format(", peer's MAC {:02x}", fmt::join(*port.peer_mac(), ":")) : "";
    lines.push_back(fmt::format("{}: {} frames received from the wire, {} sent{}", wire->notices.host(),
                                port.frames_in(), port.frames_out(), mac));
    const auto& faults = system_.counters(wire->host).link;
    if (const auto struck = faults.dropped + faults.corrupted + faults.duplicated + faults.delayed + faults.reordered)
      lines.push_back(fmt::format("{}: fault rules acted on {} of the received frames, {} of these were lost",
                                  wire->notices.host(), struck, faults.dropped));
    for (auto& line : wire->notices.report()) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace rnicsim::sim
