// SPDX-License-Identifier: Apache-2.0
#include "model/host/cm/rdma_cm.h"

#include <algorithm>
#include <cerrno>

namespace rnicsim::host {
namespace {

// The port's rate as in a path record: enum ibv_rate.
std::uint8_t rate_of(const abi::PortAttributes& port) {
  struct Rate {
    std::uint8_t speed;
    std::uint8_t width;
    std::uint8_t rate;
  };
  // Speeds: 2.5, 5, 10, 10, 14, 25, 50, 100 Gb/s a lane. Widths: 1, 4, 8, 12 lanes.
  constexpr Rate kRates[] = {{1, 1, 2},    {1, 2, 5},    {2, 1, 5},    {2, 2, 6},   {4, 1, 3},   {4, 2, 7},
                             {8, 1, 3},    {8, 2, 7},    {16, 1, 11},  {16, 2, 12}, {32, 1, 15}, {32, 2, 16},
                             {32, 4, 17},  {32, 8, 18},  {64, 1, 20},  {64, 2, 17}, {64, 4, 21}, {64, 8, 22},
                             {128, 1, 16}, {128, 2, 21}, {128, 4, 23}, {128, 8, 24}};
  const auto found = std::ranges::find_if(
      kRates, [&](const Rate& rate) { return rate.speed == port.active_speed && rate.width == port.active_width; });
  return found != std::end(kRates) ? found->rate : 0;
}

}  // namespace

RdmaCm::RdmaCm(const HostParams& params, Neighbours fabric, RdmaIds::EventSink sink)
    : params_(params),
      fabric_(std::move(fabric)),
      sink_(std::move(sink)),
      arrivals_([this] { handle_arrivals(); }),
      departures_([this] { depart(); }),
      timer_([this] { expire(); }) {}

void RdmaCm::add(const abi::NetworkInterface& interface, const Device& device) {
  devices_.emplace(interface.device, device);
  const auto& attributes = device.attributes;
  known_.push_back({interface, attributes.active_mtu, rate_of(attributes), cm::TimeCode(device.ack_delay)});
}

void RdmaCm::begin() {
  up_ = true;
  if (known_.empty()) return;
  std::ranges::sort(known_, {}, [](const RdmaIds::Device& device) { return device.interface.device; });
  ids_.emplace(RdmaIds::Host{known_, fabric_, params_.cm.resolve_known, params_.cm.resolve_neighbour}, sink_);
}

void RdmaCm::arrived(std::uint32_t device, const ManagementPort::Arrival& arrival) {
  worker_free_ = std::max(worker_free_, now()) + params_.cm.receive;
  arrivals_.push(worker_free_, {device, arrival});
}

void RdmaCm::handle_arrivals() {
  Arrived arrived;
  while (arrivals_.pop_due(arrived)) {
    if (!ids_) continue;
    const auto& arrival = arrived.arrival;
    const auto envelope = cm::decode(arrival.mad);
    if (!envelope) {
      ++malformed_;
      continue;
    }
    message({false, arrived.device, envelope->message});
    ids_->advance(now());
    ids_->receive({.local = arrival.local,
                   .remote = arrival.remote,
                   .traffic_class = arrival.traffic_class,
                   .hop_limit = kHopLimit},
                  *envelope);
    flush();
  }
}

void RdmaCm::expire() {
  ids_->advance(now());
  flush();
}

// Messages leave after the kernel's time to make them; the alarm is armed for the next deadline.
void RdmaCm::flush() {
  while (const auto transition = ids_->next_transition()) state_changed(*transition);
  while (const auto outgoing = ids_->next_message()) departures_.push(now() + params_.cm.send, *outgoing);
  if (const auto deadline = ids_->next_deadline()) {
    timer_.arm(*deadline);
  } else {
    timer_.disarm();
  }
}

void RdmaCm::depart() {
  cm::Outgoing outgoing;
  while (departures_.pop_due(outgoing)) {
    const RdmaIds::Device* from = ids_->device_with(outgoing.route.local);
    if (from == nullptr) continue;
    const std::uint32_t number = from->interface.device;
    const Device& device = devices_.at(number);
    abi::AddressVector path;
    std::ranges::copy(outgoing.route.remote, path.remote_gid);
    path.sgid_index = std::uint16_t(from->gid_index(outgoing.route.local));
    path.flow_label = outgoing.route.flow_label;
    path.traffic_class = outgoing.route.traffic_class;
    path.hop_limit = outgoing.route.hop_limit;
    path.service_level = outgoing.route.service_level;
    // A message to an address without a host is lost, as on a real wire.
    if (device.gate.resolve(path) != 0) continue;
    message({true, number, outgoing.envelope.message});
    device.port.send(path, cm::encode(outgoing.envelope));
  }
}

int RdmaCm::command(const UserChannel& channel, std::uint32_t command, std::span<const std::byte> input,
                    std::span<std::byte> output) {
  if (!up_) return EAGAIN;
  if (!ids_) return ENODEV;
  ids_->advance(now());
  const int error = execute_user_command(*ids_, channel, command, input, output);
  flush();
  return error;
}

void RdmaCm::close_channel(std::uint32_t channel) {
  if (!ids_) return;
  ids_->advance(now());
  ids_->close_channel(channel);
  flush();
}

void RdmaCm::close_process(Pasid process) {
  if (!ids_) return;
  ids_->advance(now());
  ids_->close_process(process);
  flush();
}

CmCounters RdmaCm::counters() const {
  CmCounters counters;
  if (!ids_) return counters;
  const auto& from = ids_->manager().counters();
  counters.sent = from.sent;
  counters.repeated = from.repeated;
  counters.received = from.received;
  counters.malformed = malformed_;
  counters.duplicates = from.duplicates;
  counters.unexpected = from.unexpected;
  return counters;
}

}  // namespace rnicsim::host
