// SPDX-License-Identifier: Apache-2.0
// Addresses of ids: the host's devices, bound addresses and ports, and the path to a peer.
#include <algorithm>
#include <cerrno>

#include "model/abi/net_address.h"
#include "model/host/cm/event_types.h"
#include "model/host/cm/rdma_ids.h"

namespace rnicsim::host {
namespace {

// The value that Linux asks for.
constexpr cm::TimeCode kPacketLifeTime = 18;

// The flow label of a path, by which switches tell flows apart.
std::uint32_t flow_label_of(std::uint32_t a, std::uint32_t b) {
  const std::uint64_t product = std::uint64_t{a} * b;
  return std::uint32_t(product ^ product >> 20 ^ product >> 40) & 0xfffff;
}

}  // namespace

// --- Devices.

std::uint32_t RdmaIds::Device::gid_index(const Gid& gid) const {
  const auto gids = gids_of(interface);
  return std::uint32_t(std::ranges::find(gids, gid) - gids.begin());
}
bool RdmaIds::Device::has(const Gid& gid) const { return gid_index(gid) < gids_of(interface).size(); }

bool RdmaIds::Device::is_on_link(const IpAddress& address) const {
  if (address.is_link_local()) return address.scope == 0 || address.scope == abi::net_device_index(interface.device);
  abi::NetAddress net;
  std::ranges::copy(address.bytes, net.ip);
  return abi::in_subnet(net, interface);
}

const RdmaIds::Device* RdmaIds::device_with(const Gid& gid) const {
  const auto found = std::ranges::find_if(host_.devices, [&](const Device& device) { return device.has(gid); });
  return found != host_.devices.end() ? &*found : nullptr;
}

const RdmaIds::Device& RdmaIds::device_of(const RdmaId& id) const {
  return *std::ranges::find_if(host_.devices,
                               [&](const Device& device) { return device.interface.device == *id.device; });
}

// --- Addresses.

int RdmaIds::check_bindable(const IpAddress& address) const {
  if (address.is_wildcard()) return 0;
  if (address.is_link_local() && address.scope == 0) return EINVAL;
  return is_own(address) ? 0 : EADDRNOTAVAIL;
}

// A binding to an IPv4 address is IPv4 only, unless the program sets RDMA_OPTION_ID_AFONLY otherwise.
PortTable::Binding RdmaIds::binding_of(const RdmaId& id, const IpAddress& address) {
  return {address, id.reuse_address, id.one_family.value_or(!address.ipv6)};
}

int RdmaIds::take_port(RdmaId& id, const IpAddress& address) {
  PortTable::Binding binding = binding_of(id, address);
  if (const int error = ports_of(id).bind(id.number, binding)) return error;
  id.source = binding.address;
  const Device* device = address.is_wildcard() ? nullptr : device_with(address.bytes);
  id.device = device != nullptr ? std::optional<std::uint32_t>(device->interface.device) : std::nullopt;
  id.state = IdState::address_bound;
  return 0;
}

int RdmaIds::bind(RdmaId& id, const IpAddress& address) {
  if (id.state != IdState::idle) return EINVAL;
  if (const int error = check_bindable(address)) return error;
  return take_port(id, address);
}

int RdmaIds::bind_wildcard(RdmaId& id, bool ipv6) {
  return take_port(id, IpAddress::of_gid(ipv6 ? Gid{} : IpAddress{}.bytes, ipv6, 0));
}

// The device to which the id is bound; else the device with a route. There are routes to each device's subnet;
// destinations outside of these subnets use the first device.
const RdmaIds::Device* RdmaIds::device_towards(const RdmaId& id, const IpAddress& destination) const {
  const Device* own = destination.is_wildcard() ? nullptr : device_with(destination.bytes);
  const auto on_link =
      std::ranges::find_if(host_.devices, [&](const Device& device) { return device.is_on_link(destination); });
  const Device* routed = on_link != host_.devices.end() ? &*on_link : nullptr;
  if (id.device) {
    const Device& bound = device_of(id);
    const bool has_route = routed != nullptr && own == nullptr && !destination.is_group();
    return has_route && !bound.is_on_link(destination) ? nullptr : &bound;
  }
  if (own != nullptr) return own;
  return routed != nullptr ? routed : &host_.devices.front();
}

RdmaIds::Resolution RdmaIds::resolution_of(const RdmaId& id, const IpAddress& destination, Duration timeout) {
  const Device* device = device_towards(id, destination);
  if (device == nullptr) return {ENETUNREACH, host_.resolve_known};
  if (destination.is_wildcard() || destination.is_group() || is_own(destination))
    return {0, host_.resolve_known, device};
  if (host_.fabric.resolve(destination.bytes))
    return {0, neighbours_.insert(destination.bytes).second ? host_.resolve_neighbour : host_.resolve_known, device};
  if (device->is_on_link(destination)) return {ETIMEDOUT, timeout};  // no host has the address
  return {ENETUNREACH, host_.resolve_known};
}

int RdmaIds::resolve_address(RdmaId& id, const std::optional<IpAddress>& source, const IpAddress& destination,
                             Duration timeout) {
  if (id.state == IdState::idle) {
    const bool chosen = source && !source->is_wildcard();
    const std::uint16_t port = source ? source->port : std::uint16_t{0};
    IpAddress local =
        chosen ? *source : IpAddress::of_gid(destination.ipv6 ? Gid{} : IpAddress{}.bytes, destination.ipv6, port);
    if (const int error = bind(id, local)) return error;
  }
  if (id.state != IdState::address_bound || id.source.ipv6 != destination.ipv6) return EINVAL;
  id.destination = destination;
  const Resolution resolution = resolution_of(id, destination, timeout);
  id.state = IdState::address_query;
  // A missing route is known at once.
  if (resolution.error == ENETUNREACH) {
    id.state = IdState::address_bound;
    return resolution.error;
  }
  later(resolution.delay, {id.number, Step::address, resolution.error, 0, resolution.device});
  return 0;
}

void RdmaIds::finish_address(RdmaId& id, const Task& task) {
  if (task.error != 0) {
    id.state = IdState::address_bound;
    return tell(id, CmEventType::address_error, -task.error);
  }
  const Device& device = *task.device;
  // A source address that the program chose stays.
  if (!id.device && id.destination->is_wildcard()) {
    id.source.bytes = id.destination->bytes;
  } else if (!id.device) {
    const auto gids = gids_of(device.interface);
    const bool link_local = id.destination->is_link_local();
    id.source.bytes = gids[!id.destination->ipv6 ? kIpv4GidIndex : link_local ? 0 : gids.size() - 1];
    id.source.scope = link_local ? abi::net_device_index(device.interface.device) : 0;
  }
  ports_of(id).change(id.number, binding_of(id, id.source));
  id.device = device.interface.device;
  id.state = IdState::address_resolved;
  tell(id, CmEventType::address_resolved, 0);
}

int RdmaIds::resolve_route(RdmaId& id) {
  if (id.state != IdState::address_resolved) return EINVAL;
  id.state = IdState::route_query;
  later(host_.resolve_known, {id.number, Step::route});
  return 0;
}

void RdmaIds::finish_route(RdmaId& id) {
  make_path(id);
  id.state = IdState::route_resolved;
  tell(id, CmEventType::route_resolved, 0);
}

void RdmaIds::make_path(RdmaId& id) {
  IdPath path;
  const bool to_itself = id.destination->is_wildcard();
  const Device& device = device_of(id);
  const Gid own = gids_of(device.interface).front();
  path.route = {.local = to_itself ? own : id.source.bytes,
                .remote = to_itself ? own : id.destination->bytes,
                .flow_label = flow_label_of(id.source.port, id.destination->port),
                .traffic_class = id.traffic_class,
                .hop_limit = kHopLimit,
                .service_level = std::uint8_t(id.traffic_class >> 5)};
  path.mtu = device.mtu;
  path.rate = device.rate;
  path.packet_life_time = kPacketLifeTime;
  id.path = path;
}

}  // namespace rnicsim::host
