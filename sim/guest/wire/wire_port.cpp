// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/wire/wire_port.h"

#include <fmt/format.h>

#include <utility>

#include "model/base/frame.h"
#include "model/base/payload.h"
#include "model/fabric/frame_port.h"
#include "sim/config/host_record.h"
#include "sim/config/topology.h"

namespace rnicsim::sim {
namespace {

using namespace ethernet;

// Limit of the frames that wait for the simulated cable. Above it the port reads no frames, and the peer has to wait.
constexpr std::size_t kMostWaiting = 1024;
constexpr std::size_t kMostHeld = 64;
constexpr std::chrono::milliseconds kBetweenQuestions{200};

}  // namespace

WirePort::WirePort(const abi::NetworkInterface& host, fabric::FramePort& port, std::unique_ptr<WireLine> line,
                   WireNotices& notices)
    : mac_(std::to_array(host.mac)),
      ipv4_(std::to_array(host.ipv4)),
      label_(ipv4_text(host)),
      port_(port),
      line_(std::move(line)),
      notices_(notices) {
  port_.arrived = [this](const Frame& frame) { give(frame); };
}

bool WirePort::has_room() const { return port_.waiting() < kMostWaiting; }

void WirePort::work() {
  line_->work();
  if (std::exchange(connection_, line_->connections()) != line_->connections()) peer_.reset();
  if (has_room()) line_->receive([this](std::span<const std::byte> bytes) { take(bytes); });
}

void WirePort::take(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeaderBytes)
    return notices_.tell(WireTrouble::runt,
                         fmt::format("the peer sent a frame of {} bytes, shorter than an Ethernet header, which is "
                                     "dropped",
                                     bytes.size()));
  if (!is_of_host(bytes)) return;
  ++frames_in_;
  auto payload = Payload::copy_of(bytes);
  const auto frame = payload.writable();
  const auto source = mac_at(frame, kSource);
  set_field(frame, kSource, mac_);
  if (is_arp(frame) && mac_at(frame, kArpSenderMac) == source) set_field(frame, kArpSenderMac, mac_);
  port_.send(Frame::of(std::move(payload)));
}

// The sender of a frame with the host's IPv4 address has the host's MAC address.
bool WirePort::is_of_host(std::span<const std::byte> frame) {
  const auto source = mac_at(frame, kSource);
  if (sender_of(frame) == ipv4_ && !is_group(source) && peer_ != source) learn(source);
  if (source == mac_ || source == peer_) return true;
  if (!peer_) return false;  // no notice: the host itself may send frames without an IPv4 address first
  notices_.tell(WireTrouble::other_station,
                fmt::format("a frame is dropped: its station ({:02x}) is not the station with {}",
                            fmt::join(source, ":"), label_));
  return false;
}

void WirePort::learn(const Mac& mac) {
  peer_ = mac;
  for (auto& frame : std::exchange(held_, {})) put(frame);
}

void WirePort::give(const Frame& frame) {
  Bytes bytes;
  frame.append_to(bytes);
  if (bytes.size() < kHeaderBytes) return;
  if (!peer_ && mac_at(bytes, kDestination) == mac_ && is_ipv4(bytes)) return hold(std::move(bytes));
  put(bytes);
}

// Simulated hosts know the MAC address of the topology and send without ARP. So the port sends the ARP request, with
// the sending host's addresses.
void WirePort::hold(Bytes&& frame) {
  if (Clock::now() - asked_ >= kBetweenQuestions) {
    asked_ = Clock::now();
    const auto question = arp_request(mac_at(frame, kSource), ipv4_at(frame, kIpv4Source), ipv4_);
    line_->send(question);
  }
  held_.push_back(std::move(frame));
  if (held_.size() <= kMostHeld) return;
  held_.pop_front();
  notices_.tell(WireTrouble::unanswered,
                fmt::format("the peer does not answer ARP for {}: frames to it are lost", label_));
}

void WirePort::put(Bytes& frame) {
  if (peer_ && mac_at(frame, kDestination) == mac_) {
    set_field(frame, kDestination, *peer_);
    if (is_arp(frame) && mac_at(frame, kArpTargetMac) == mac_) set_field(frame, kArpTargetMac, *peer_);
  }
  send(frame);
}

void WirePort::send(const Bytes& frame) {
  if (line_->send(frame)) {
    ++frames_out_;
    return;
  }
  if (line_->is_connected())
    notices_.tell(WireTrouble::not_taken, "the peer accepts frames too slowly: some frames are lost");
  else if (!is_group(mac_at(frame, kDestination)))
    notices_.tell(WireTrouble::nobody, "frames are lost, because no peer is connected or the interface is down");
}

}  // namespace rnicsim::sim
