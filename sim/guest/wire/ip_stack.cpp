// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/wire/ip_stack.h"

#include <lwip/etharp.h>
#include <lwip/ethip6.h>
#include <lwip/init.h>
#include <lwip/netif.h>
#include <lwip/pbuf.h>
#include <lwip/timeouts.h>
#include <netif/ethernet.h>

#include <cstring>
#include <utility>

#include "model/abi/net_address.h"
#include "sim/guest/wire/ethernet.h"

namespace rnicsim::sim {

using namespace ethernet;

struct IpStack::Port {
  static constexpr std::uint16_t kMtu = 1500;

  static err_t set_up(netif* port) {
    auto& self = *static_cast<Port*>(port->state);
    port->name[0] = 'e';
    port->name[1] = 't';
    port->hwaddr_len = sizeof self.interface.mac;
    std::memcpy(port->hwaddr, self.interface.mac, sizeof self.interface.mac);
    port->mtu = kMtu;
    port->flags |=
        NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_ETHERNET | NETIF_FLAG_MLD6 | NETIF_FLAG_LINK_UP;
    port->output = etharp_output;
    port->output_ip6 = ethip6_output;
    port->linkoutput = put;
    return ERR_OK;
  }

  static err_t put(netif* port, pbuf* packet) {
    std::vector<std::byte> frame(packet->tot_len);
    pbuf_copy_partial(packet, frame.data(), packet->tot_len, 0);
    static_cast<Port*>(port->state)->send(frame);
    return ERR_OK;
  }

  abi::NetworkInterface interface;
  Send send;
  struct netif port {};
};

IpStack::IpStack() {
  static const bool started = [] {
    lwip_init();
    return true;
  }();
  static_cast<void>(started);
}

IpStack::~IpStack() {
  for (const auto& one : ports_) netif_remove(&one->port);
}

void IpStack::add(const abi::NetworkInterface& interface, Send send) {
  auto& added = *ports_.emplace_back(std::make_unique<Port>(Port{interface, std::move(send)}));
  ip4_addr_t address{}, mask{}, gateway{};
  std::memcpy(&address, interface.ipv4, sizeof interface.ipv4);
  mask.addr = lwip_htonl(interface.ipv4_prefix == 0 ? 0 : ~std::uint32_t{0} << (32 - interface.ipv4_prefix));
  netif_add(&added.port, &address, &mask, &gateway, &added, Port::set_up, ethernet_input);
  if (interface.ipv6_prefix != 0) {
    netif_set_ip6_autoconfig_enabled(&added.port, 0);
    netif_create_ip6_linklocal_address(&added.port, 1);
    ip6_addr_t own{};
    std::memcpy(own.addr, interface.ipv6, sizeof interface.ipv6);
    s8_t index = -1;
    if (netif_add_ip6_address(&added.port, &own, &index) == ERR_OK && index >= 0)
      netif_ip6_addr_set_state(&added.port, index, IP6_ADDR_PREFERRED);
  }
  netif_set_up(&added.port);
  added.port.rs_count = 0;  // no router solicitation
}

bool IpStack::takes(const abi::NetworkInterface& interface, std::span<const std::byte> frame) {
  if (frame.size() < kHeaderBytes) return false;
  const auto destination = mac_at(frame, kDestination);
  const bool is_own = destination == std::to_array(interface.mac);
  if (is_arp(frame)) return is_own || destination == kBroadcast;
  if (is_ipv4(frame)) {
    const auto protocol = std::to_integer<std::uint8_t>(frame[kIpv4Protocol]);
    return is_own && (protocol == kTcp || protocol == kIcmp) &&
           ipv4_at(frame, kIpv4Destination) == std::to_array(interface.ipv4);
  }
  if (!is_ipv6(frame) || interface.ipv6_prefix == 0) return false;
  const auto next = std::to_integer<std::uint8_t>(frame[kIpv6Next]);
  return next == kIcmpv6 ? is_own || is_group(destination) : is_own && next == kTcp;
}

void IpStack::receive(std::size_t interface, std::span<const std::byte> frame) {
  if (frame.size() > UINT16_MAX) return;
  pbuf* const packet = pbuf_alloc(PBUF_RAW, static_cast<u16_t>(frame.size()), PBUF_RAM);
  if (packet == nullptr) return;
  pbuf_take(packet, frame.data(), static_cast<u16_t>(frame.size()));
  auto& port = ports_[interface]->port;
  if (port.input(packet, &port) != ERR_OK) pbuf_free(packet);
}

void IpStack::work() { sys_check_timeouts(); }

const abi::NetworkInterface& IpStack::interface(std::size_t index) const { return ports_[index]->interface; }

netif& IpStack::port(std::size_t index) { return ports_[index]->port; }

std::optional<std::size_t> IpStack::way(std::uint32_t host, const abi::NetAddress& to) const {
  for (std::size_t i = 0; i < ports_.size(); ++i)
    if (ports_[i]->interface.host == host && abi::in_subnet(to, ports_[i]->interface)) return i;
  return std::nullopt;
}

}  // namespace rnicsim::sim
