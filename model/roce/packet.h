// SPDX-License-Identifier: Apache-2.0
// RoCEv2 framing: Ethernet with at most one VLAN tag (IEEE 802.1Q), IPv4 or IPv6, UDP port 4791, then the InfiniBand
// headers. Payload is not touched.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "model/roce/frame_sizes.h"
#include "model/roce/headers.h"

namespace rnicsim::roce {

inline constexpr std::uint16_t kRoceUdpPort = 4791;
inline constexpr std::uint16_t kLeastSourcePort = 0xc000;

// Source and destination of a frame. IPv4 if both GIDs are IPv4-mapped.
struct FrameAddresses {
  MacAddress source_mac{};
  MacAddress destination_mac{};
  Gid source{};
  Gid destination{};
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 64;
  std::uint32_t flow_label = 0;
  std::uint16_t source_port = kLeastSourcePort;
  std::uint16_t vlan = kNoVlan;    // VLAN of the tag; 0: a tag with a priority only
  std::uint8_t service_level = 0;  // the low 3 bits are the PCP of the tag

  bool tagged() const { return vlan != kNoVlan; }
  std::uint16_t tag() const {  // PCP 3 bits, DEI 1 bit, VLAN 12 bits
    return static_cast<std::uint16_t>((service_level & 7) << 13 | (vlan & 0xfff));
  }
  bool operator==(const FrameAddresses&) const = default;
};

bool is_ipv4_mapped(const Gid& gid);

// Source port, which routers hash: the same for all packets of a connection in one direction.
constexpr std::uint16_t source_port_for(Qpn local, Qpn remote) {
  const std::uint32_t mixed = (local.value * 0x9e3779b1u) ^ (remote.value * 0x85ebca6bu);
  return static_cast<std::uint16_t>(kLeastSourcePort | (mixed >> 18));
}

// Bytes before the IP header. `frame`: the first bytes of a frame.
std::size_t link_header_bytes(std::span<const std::byte> frame);
// Bytes before the payload.
std::size_t frame_header_bytes(const FrameAddresses& addresses, Opcode opcode);
// Writes the bytes before the payload; returns their number. `headers.bth.pad`: pad bytes after the payload.
std::size_t frame_header(const FrameAddresses& addresses, const Headers& headers, std::uint32_t payload_bytes,
                         std::span<std::byte, kMaxFrameHeader> out);

// True if the first bytes show another protocol than RoCEv2, or another UDP port. False if they are damaged, since a
// damaged frame may have been RoCEv2.
bool is_foreign(std::span<const std::byte> front);

enum class ParseError : std::uint8_t {
  none,
  truncated,  // shorter than its length fields
  not_ip,
  bad_ip_header,  // version, header length, fragment or total length
  bad_checksum,
  not_roce,  // another protocol or another UDP port
  bad_udp_length,
  bad_version,  // version of the BTH
  bad_opcode,
  bad_length,  // no room for headers, pad and ICRC
};
std::string_view text(ParseError error);

struct ParsedFrame {
  ParseError error = ParseError::none;
  FrameAddresses addresses;
  Headers headers;
  std::uint32_t payload_offset = 0;  // from the start of the frame
  std::uint32_t payload_bytes = 0;   // without pad
};

// Parses a frame of `frame_bytes` bytes. `front`: the whole frame, or at least all its headers. Ethernet padding after
// the IP packet is allowed. The ICRC is not checked.
ParsedFrame parse_frame(std::span<const std::byte> front, std::size_t frame_bytes);

// Writes the GRH that a datagram's receiver finds before the payload: the frame's IPv6 header, or 20 zeros and its IPv4
// header. The frame must parse.
void global_route_header(std::span<const std::byte> frame, std::span<std::byte, kGrhBytes> out);
// The same from decoded headers, without the frame's bytes.
void global_route_header(const FrameAddresses& addresses, const Headers& headers, std::uint32_t payload_bytes,
                         std::span<std::byte, kGrhBytes> out);

}  // namespace rnicsim::roce
