// SPDX-License-Identifier: Apache-2.0
// The end of a host's cable outside of the simulation. The fabric knows the host by the MAC address of the topology.
// The machine outside has another MAC address, which this port learns; the port exchanges the two in Ethernet and ARP
// headers. The ICRC does not cover these headers.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/abi/attach.h"
#include "sim/guest/wire/ethernet.h"
#include "sim/guest/wire/wire_line.h"
#include "sim/guest/wire/wire_notices.h"

namespace rnicsim {
class Frame;
namespace fabric {
class FramePort;
}
}  // namespace rnicsim

namespace rnicsim::sim {

class WirePort {
 public:
  // `notices` and `port` outlive this port.
  WirePort(const abi::NetworkInterface& host, fabric::FramePort& port, std::unique_ptr<WireLine> line,
           WireNotices& notices);

  void watch(std::vector<pollfd>& watched) const { line_->watch(watched, has_room()); }
  void work();
  bool has_outstanding() const { return line_->has_outstanding(); }

  std::uint64_t frames_in() const { return frames_in_; }
  std::uint64_t frames_out() const { return frames_out_; }
  const std::optional<ethernet::Mac>& peer_mac() const { return peer_; }

 private:
  using Bytes = std::vector<std::byte>;
  using Clock = std::chrono::steady_clock;

  bool has_room() const;
  // --- From the world.
  void take(std::span<const std::byte> bytes);
  bool is_of_host(std::span<const std::byte> frame);
  void learn(const ethernet::Mac& mac);
  // --- To the world.
  void give(const Frame& frame);
  void hold(Bytes&& frame);
  void put(Bytes& frame);
  void send(const Bytes& frame);

  const ethernet::Mac mac_;  // MAC address of the topology
  const ethernet::Ipv4 ipv4_;
  const std::string label_;
  fabric::FramePort& port_;
  const std::unique_ptr<WireLine> line_;
  WireNotices& notices_;
  std::optional<ethernet::Mac> peer_;
  std::deque<Bytes> held_;  // frames that wait until peer_ is known
  Clock::time_point asked_{};
  unsigned connection_ = 0;  // number of the line's connection that peer_ belongs to
  std::uint64_t frames_in_ = 0;
  std::uint64_t frames_out_ = 0;
};

}  // namespace rnicsim::sim
