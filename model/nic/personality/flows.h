// SPDX-License-Identifier: Apache-2.0
// Flow rules and receive-side scaling of raw frames, decoded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/nic/personality/values.h"

namespace rnicsim::nic {

// Headers of a frame; each is the bytes of its fields, in network order:
//   ethernet  destination 6, source 6, EtherType behind the VLAN tags 2, outermost VLAN tag 2 (0: none)
//   ipv4      source 4, destination 4, protocol 1, TOS 1, TTL 1, flags 1 (bit 0 more fragments, bit 1 do not fragment)
//   ipv6      source 16, destination 16, flow label 4, protocol behind the extension headers 1, traffic class 1,
//             hop limit 1
//   esp       SPI 4, sequence number 4
//   tcp, udp  destination port 2, source port 2
//   vxlan     VNI 4
//   gre       flags and version 2, protocol 2, key 4 (0: none)
//   mpls      the outermost label's word 4
enum class FlowHeader : std::uint8_t { ethernet, ipv4, ipv6, esp, tcp, udp, vxlan, gre, mpls };
inline constexpr std::size_t kFlowHeaders = 9;
inline constexpr std::size_t kFlowFieldBytes = 40;
using FlowFields = std::array<std::byte, kFlowFieldBytes>;  // zeros after the last field

struct FlowCondition {
  FlowHeader header{};
  bool inner = false;
  FlowFields value{};  // value bits under `mask`
  FlowFields mask{};

  bool operator==(const FlowCondition&) const = default;
};

enum class FlowKind : std::uint8_t {
  normal = 0,
  all_default = 1,        // frames that no normal rule takes
  multicast_default = 2,  // those of all_default with a multicast MAC address
  sniffer = 3,            // a copy of every frame, also of taken ones
};

struct FlowRule {
  FlowKind kind = FlowKind::normal;
  std::uint16_t priority = 0;             // normal rules; the lowest value is first
  std::vector<FlowCondition> conditions;  // normal rules: all must match
  bool drops = false;
  bool passes_on = false;            // later rules get the frame, too
  std::optional<std::uint32_t> tag;  // reported with the frame
  std::optional<std::uint32_t> counter;
  Qpn destination;
};

inline constexpr std::size_t kRssKeyBytes = 40;
using RssKey = std::array<std::byte, kRssKeyBytes>;

// Fields of the hash, with the values of enum ibv_rx_hash_fields.
namespace rss_field {
inline constexpr std::uint32_t kSourceIpv4 = 1u << 0;
inline constexpr std::uint32_t kDestinationIpv4 = 1u << 1;
inline constexpr std::uint32_t kSourceIpv6 = 1u << 2;
inline constexpr std::uint32_t kDestinationIpv6 = 1u << 3;
inline constexpr std::uint32_t kSourceTcp = 1u << 4;
inline constexpr std::uint32_t kDestinationTcp = 1u << 5;
inline constexpr std::uint32_t kSourceUdp = 1u << 6;
inline constexpr std::uint32_t kDestinationUdp = 1u << 7;
inline constexpr std::uint32_t kSpi = 1u << 8;
inline constexpr std::uint32_t kInner = 1u << 31;  // headers inside a tunnel
inline constexpr std::uint32_t kAll = 0x1ff | kInner;
}  // namespace rss_field

struct RssContext {
  std::uint32_t fields = 0;  // rss_field bits; 0: all frames hash to 0
  RssKey key{};
  std::vector<Qpn> queues;  // a power of two; the low bits of the hash are the index
};

}  // namespace rnicsim::nic
