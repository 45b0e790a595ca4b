// RoCEv2 framing: Ethernet with at most one VLAN tag (IEEE 802.1Q), IPv4 or IPv6, UDP port 4791, then the InfiniBand
// headers. Payload is never touched here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "model/roce/headers.h"

namespace rnicsim::roce {

inline constexpr std::size_t kEthernetBytes = 14;  // without a VLAN tag
inline constexpr std::size_t kVlanTagBytes = 4;
inline constexpr std::size_t kIpv4Bytes = 20;
inline constexpr std::size_t kIpv6Bytes = 40;
inline constexpr std::size_t kUdpBytes = 8;
inline constexpr std::size_t kMaxFrameHeader =
    kEthernetBytes + kVlanTagBytes + kIpv6Bytes + kUdpBytes + Headers::kMaxBytes;
inline constexpr std::uint16_t kRoceUdpPort = 4791;
inline constexpr std::uint16_t kLeastSourcePort = 0xc000;

// Where a frame comes from and goes to. IPv4 when both GIDs are IPv4-mapped.
struct FrameAddresses {
  MacAddress source_mac{};
  MacAddress destination_mac{};
  Gid source{};
  Gid destination{};
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 64;
  std::uint32_t flow_label = 0;
  std::uint16_t source_port = kLeastSourcePort;
  std::uint16_t vlan = kNoVlan;            // 0: a tag with a priority alone
  std::uint8_t service_level = 0;          // its low 3 bits are the PCP of the tag

  bool tagged() const { return vlan != kNoVlan; }
  std::uint16_t tag() const {              // PCP 3 bits, DEI 1 bit, VLAN 12 bits
    return static_cast<std::uint16_t>((service_level & 7) << 13 | (vlan & 0xfff));
  }
  bool operator==(const FrameAddresses&) const = default;
};

bool is_ipv4_mapped(const Gid& gid);

// Routers hash this port: the same for all packets of a connection, in one direction.
constexpr std::uint16_t source_port_for(Qpn local, Qpn remote) {
  const std::uint32_t mixed = (local.value * 0x9e3779b1u) ^ (remote.value * 0x85ebca6bu);
  return static_cast<std::uint16_t>(kLeastSourcePort | (mixed >> 18));
}

// Bytes before the IP header, of a frame's first bytes.
std::size_t link_header_bytes(std::span<const std::byte> frame);
// Bytes of everything before the payload.
std::size_t frame_header_bytes(const FrameAddresses& addresses, Opcode opcode);
// Writes that; returns its size. `headers.bth.pad` says how many bytes follow the payload.
std::size_t frame_header(const FrameAddresses& addresses, const Headers& headers, std::uint32_t payload_bytes,
                         std::span<std::byte, kMaxFrameHeader> out);

// A frame of another protocol than RoCE v2, or to another UDP port, as far as its first bytes tell: what is damaged may
// have been anything, and is none.
bool is_foreign(std::span<const std::byte> front);

enum class ParseError : std::uint8_t {
  none,
  truncated,            // shorter than its own lengths say
  not_ip,
  bad_ip_header,        // version, header length, fragment or total length
  bad_checksum,
  not_roce,             // another protocol or UDP port
  bad_udp_length,
  bad_version,          // of the BTH
  bad_opcode,
  bad_length,           // no room for headers, pad and ICRC
};
std::string_view text(ParseError error);

struct ParsedFrame {
  ParseError error = ParseError::none;
  FrameAddresses addresses;
  Headers headers;
  std::uint32_t payload_offset = 0;   // from the start of the frame
  std::uint32_t payload_bytes = 0;    // without pad
};

// Parses the first bytes of a frame of `frame_bytes` bytes: `front` is the whole frame, or at least all headers of it.
// Ethernet padding after the IP packet is allowed. The ICRC is not checked here.
ParsedFrame parse_frame(std::span<const std::byte> front, std::size_t frame_bytes);

// What a datagram's receiver finds before the payload: the frame's IPv6 header, or its IPv4 header behind 20 zeros. Of
// a frame that parses.
void global_route_header(std::span<const std::byte> frame, std::span<std::byte, kGrhBytes> out);
// The same of a frame that need not be written for it.
void global_route_header(const FrameAddresses& addresses, const Headers& headers, std::uint32_t payload_bytes,
                         std::span<std::byte, kGrhBytes> out);

}  // namespace rnicsim::roce
