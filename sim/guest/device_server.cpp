// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/device_server.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>

#include "model/base/kernel.h"
#include "sim/adapter.h"
#include "sim/config/host_record.h"
#include "sim/guest/nic_function.h"
#include "sim/os/progress_line.h"
#include "sim/system.h"

namespace rnicsim::sim {
namespace {

// The longest wait between two checks of limits and signals.
constexpr std::chrono::milliseconds kLongestWait{100};

}  // namespace

DeviceServer::DeviceServer(System& system, const std::vector<ServedHost>& served, const Limits& limits, bool once)
    : system_(system), served_(served), once_(once), watch_(limits), snapshots_(system, [](Snapshot&) {}) {
  for (const auto& [host, socket] : served_) {
    auto& adapter = guest_adapter(system, host);
    connect_to_guest(adapter, server_.add(nic_function(adapter), socket));
    hosts_.insert(host);
  }
}

Duration DeviceServer::limit() const { return watch_.limits().simulated.value_or(Agenda::kNever); }

int DeviceServer::serve() {
  start_beside_guests(system_);
  greet();
  while (!ended()) {
    server_.turn(kLongestWait, limit());
    snapshots_.serve();
  }
  server_.disconnect();
  progress_line::erase();
  return status_;
}

// Prints the MAC address of each host: switches forward by it, so a virtual machine behind a switch has to use it.
void DeviceServer::greet() const {
  for (const auto& [host, socket] : served_) {
    const auto& adapter = guest_adapter(system_, host);
    fmt::print("rnicsim: {} (MAC {}, {}): {} at {}\n", adapter.label(), mac_text(adapter.interface()),
               ipv4_text(adapter.interface()), socket.protocol == GuestProtocol::qemu ? "x-pci-proxy" : "vfio-user",
               socket.path);
  }
  std::fflush(stdout);
}

bool DeviceServer::ended() {
  if (watch_.report_wanted()) {
    progress_line::erase();
    fmt::print(stderr, "rnicsim: simulated time {}\n{}", to_string(now()), state());
  }
  if (const auto end = watch_.end())
    end_for(*end);
  else if (watch_.limits().simulated && now() >= limit())
    end_for(at_simulated_limit(limit()));
  else if (has_stopped(system_) || (once_ && server_.had_clients() && !server_.has_clients()))
    ending_ = true;
  return ending_;
}

// A signal is the regular end: no warning, status 0.
void DeviceServer::end_for(const Watch::End& end) {
  ending_ = true;
  if (end.status != kLimitStatus) return;
  warnings_.push_back(end.why + '\n' + state());
  status_ = end.status;
}

std::string DeviceServer::state() const { return server_.state() + nic_states(system_, hosts_); }

}  // namespace rnicsim::sim
