#include "model/fabric/switch.h"

#include <algorithm>
#include <string>
#include <utility>

#include "model/fabric/flow_hash.h"

namespace rnicsim::fabric {
namespace {

constexpr std::uint8_t kGroupBit = 1;  // of a MAC address's first byte

}  // namespace

SwitchPort::SwitchPort(sc_core::sc_module_name name, const LineTiming& timing) : sc_module(name), timing_(timing) {}

std::size_t SwitchPort::send(Frame&& frame, Duration ready) {
  free_ = std::max(ready, free_ + timing_.time_for(frame));
  leaving_.push(free_, std::move(frame));
  return leaving_.size();
}

void SwitchPort::leave_due() {
  Frame frame;
  while (leaving_.pop_due(frame)) out(std::move(frame));
}

Switch::Switch(sc_core::sc_module_name name, const SwitchParams& params, SwitchWiring wiring)
    : sc_module(name), params_(params), wiring_(std::move(wiring)), held_(wiring_.lines.size()) {
  const auto& lines = wiring_.lines;
  if (!lines.empty()) shortest_ = std::ranges::min(lines, {}, &SwitchWiring::Line::latency).latency;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    alike_ = alike_ && lines[i].timing == lines.front().timing;
    ports_.push_back(std::make_unique<SwitchPort>(("port" + std::to_string(i)).c_str(), lines[i].timing));
    if (lines[i].latency > shortest_) held_[i] = std::make_unique<DelayLine<Frame>>([this, i] { release_due(i); });
  }
}

// Who comes first is first at its way out: a frame of a longer cable, given at the same time, comes later.
void Switch::receive(std::size_t from, Frame&& frame, Duration delay) {
  if (held_[from]) return held_[from]->push(now() + delay - shortest_, std::move(frame));
  arrive(from, std::move(frame), now() + delay);
}

void Switch::release_due(std::size_t from) {
  Frame frame;
  while (held_[from]->pop_due(frame)) arrive(from, std::move(frame), now() + shortest_);
}

void Switch::arrive(std::size_t from, Frame&& frame, Duration at) {
  if ((frame.destination_mac()[0] & kGroupBit) != 0) return arrive_for_group(from, frame, at);
  const auto to = way_of(frame);
  if (!to) {
    ++counters_.unknown;
    return;
  }
  ++counters_.frames;
  counters_.bytes += frame.size();
  send(from, *to, std::move(frame), at);
}

std::optional<std::size_t> Switch::way_of(const Frame& frame) const {
  const auto* place = wiring_.stations->find(mac_number(std::span(frame.destination_mac())));
  if (place == nullptr) return std::nullopt;
  if (place->box == wiring_.number) return place->port;
  const auto& ways = wiring_.ways[wiring_.way_to[place->box]];
  if (ways.empty()) return std::nullopt;
  if (ways.size() == 1) return ways.front();
  return ways[choose_way(flow_of(frame), wiring_.number, static_cast<std::uint32_t>(ways.size()))];
}

void Switch::arrive_for_group(std::size_t from, const Frame& frame, Duration at) {
  ++counters_.frames;
  counters_.bytes += frame.size();
  for (const std::size_t to : wiring_.flooded)
    if (to != from) send(from, to, Frame(frame), at);
}

void Switch::send(std::size_t from, std::size_t to, Frame&& frame, Duration at) {
  const Duration leaves = ready(from, to, frame, at);
  const std::size_t waiting = ports_[to]->send(std::move(frame), leaves);
  counters_.most_waiting = std::max<Counter>(counters_.most_waiting, waiting);
}

// When its last bit, there at `at`, could leave. Cut through, unless the frame comes in slower than it goes out: then
// it has to be whole first.
Duration Switch::ready(std::size_t from, std::size_t to, const Frame& frame, Duration at) const {
  if (alike_) return at + params_.latency;
  const auto in = ports_[from]->timing().time_for(frame), out = ports_[to]->timing().time_for(frame);
  if (in == out) return at + params_.latency;
  return in > out ? at + params_.latency + out : at - in + params_.latency + out;
}

}  // namespace rnicsim::fabric
