#include "model/fabric/switch.h"

#include <algorithm>
#include <span>
#include <string>

namespace rnicsim::fabric {
namespace {

constexpr std::size_t kMacBytes = 6;
constexpr std::uint8_t kGroupBit = 1;  // of a MAC address's first byte

std::uint64_t mac_number(std::span<const std::uint8_t, kMacBytes> mac) {
  std::uint64_t number = 0;
  for (const auto byte : mac) number = number << 8 | byte;
  return number;
}

}  // namespace

SwitchPort::SwitchPort(sc_core::sc_module_name name, const LineTiming& timing) : sc_module(name), timing_(timing) {}

std::size_t SwitchPort::send(Frame&& frame, Duration ready) {
  const auto bytes = std::max<std::uint64_t>(frame.size(), timing_.least_frame.bytes) + timing_.overhead.bytes;
  free_ = std::max(ready, free_ + timing_.rate.time_for({bytes}));
  leaving_.push(free_, std::move(frame));
  return leaving_.size();
}

void SwitchPort::leave_due() {
  Frame frame;
  while (leaving_.pop_due(frame)) out(std::move(frame));
}

Switch::Switch(sc_core::sc_module_name name, const SwitchParams& params, const LineTiming& timing, std::size_t ports)
    : sc_module(name), params_(params) {
  for (std::size_t i = 0; i < ports; ++i)
    ports_.push_back(std::make_unique<SwitchPort>(("port" + std::to_string(i)).c_str(), timing));
}

void Switch::learn(const std::uint8_t (&mac)[kMacBytes], std::size_t port) {
  port_of_[mac_number(mac)] = port;
}

void Switch::receive(std::size_t from, Frame&& frame, Duration delay) {
  const auto& mac = frame.destination_mac();
  const Duration ready = now() + delay + params_.latency;
  if ((mac[0] & kGroupBit) != 0) return receive_for_group(from, frame, ready);
  const auto port = port_of_.find(mac_number(mac));
  if (port == port_of_.end()) {
    ++counters_.unknown;
    return;
  }
  ++counters_.frames;
  counters_.bytes += frame.size();
  send(port->second, std::move(frame), ready);
}

void Switch::receive_for_group(std::size_t from, const Frame& frame, Duration ready) {
  ++counters_.frames;
  counters_.bytes += frame.size();
  for (const std::size_t port : flooded_)
    if (port != from) send(port, Frame(frame), ready);
}

void Switch::send(std::size_t port, Frame&& frame, Duration ready) {
  const std::size_t waiting = ports_[port]->send(std::move(frame), ready);
  counters_.most_waiting = std::max<Counter>(counters_.most_waiting, waiting);
}

}  // namespace rnicsim::fabric
