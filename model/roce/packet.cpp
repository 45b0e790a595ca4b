// SPDX-License-Identifier: Apache-2.0
#include "model/roce/packet.h"

#include <algorithm>

#include "model/roce/icrc.h"
#include "model/roce/wire.h"

namespace rnicsim::roce {
namespace {

constexpr std::uint16_t kEtherTypeIpv4 = 0x0800;
constexpr std::uint16_t kEtherTypeIpv6 = 0x86dd;
constexpr std::uint16_t kEtherTypeVlan = 0x8100;
constexpr unsigned kPcpShift = 13;
constexpr std::uint16_t kVlanMask = 0xfff;
constexpr std::uint8_t kProtocolUdp = 17;
constexpr std::uint8_t kIpv4Start = 0x45;  // version 4, header without options
constexpr std::uint16_t kDontFragment = 0x4000;
constexpr std::uint16_t kFragmentBits = 0x3fff;  // "more fragments" or an offset
constexpr std::size_t kMappedPrefix = 12;

std::uint16_t ipv4_checksum(const std::byte* ip) {
  std::uint32_t sum = 0;
  WireReader in({ip, kIpv4Bytes});
  for (std::size_t i = 0; i < kIpv4Bytes; i += 2) sum += in.get<std::uint16_t>();
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

void put_ipv4(const FrameAddresses& a, std::size_t udp_bytes, WireWriter& out, std::byte* ip) {
  out.put(kIpv4Start);
  out.put(a.traffic_class);
  out.put(static_cast<std::uint16_t>(kIpv4Bytes + udp_bytes));
  out.put(std::uint16_t{0});
  out.put(kDontFragment);
  out.put(a.hop_limit);
  out.put(kProtocolUdp);
  out.put(std::uint16_t{0});
  out.copy(std::span(a.source).subspan(kMappedPrefix));
  out.copy(std::span(a.destination).subspan(kMappedPrefix));
  WireWriter(std::span(ip + 10, 2)).put(ipv4_checksum(ip));
}

void put_ipv6(const FrameAddresses& a, std::size_t udp_bytes, WireWriter& out) {
  out.put(6u << 28 | std::uint32_t{a.traffic_class} << 20 | (a.flow_label & 0xfffff));
  out.put(static_cast<std::uint16_t>(udp_bytes));
  out.put(kProtocolUdp);
  out.put(a.hop_limit);
  out.copy(a.source);
  out.copy(a.destination);
}

bool is_ipv4(const FrameAddresses& a) { return is_ipv4_mapped(a.source) && is_ipv4_mapped(a.destination); }

std::size_t datagram_bytes(const Headers& headers, std::uint32_t payload_bytes) {
  return kUdpBytes + encoded_size(info(headers.bth.opcode)) + payload_bytes + headers.bth.pad + kIcrcBytes;
}

Gid mapped(WireReader& in) {
  Gid gid{};
  gid[10] = gid[11] = 0xff;
  auto tail = std::span(gid).subspan(kMappedPrefix);
  in.copy(tail);
  return gid;
}

void take_tag(WireReader& in, FrameAddresses& a) {
  in.skip(sizeof kEtherTypeVlan);
  const auto tag = in.get<std::uint16_t>();
  a.vlan = tag & kVlanMask;
  a.service_level = static_cast<std::uint8_t>(tag >> kPcpShift);
}

struct IpResult {
  ParseError error;
  std::size_t datagram = 0;  // bytes from the UDP header on
};

IpResult parse_ipv4(std::span<const std::byte> ip, std::size_t room, FrameAddresses& a) {
  if (ip.size() < kIpv4Bytes) return {ParseError::truncated};
  WireReader in(ip);
  if (in.get<std::uint8_t>() != kIpv4Start) return {ParseError::bad_ip_header};
  a.traffic_class = in.get<std::uint8_t>();
  const auto total = in.get<std::uint16_t>();
  in.skip(2);
  if ((in.get<std::uint16_t>() & kFragmentBits) != 0) return {ParseError::bad_ip_header};
  a.hop_limit = in.get<std::uint8_t>();
  const auto protocol = in.get<std::uint8_t>();
  in.skip(2);
  a.source = mapped(in);
  a.destination = mapped(in);
  if (ipv4_checksum(ip.data()) != 0) return {ParseError::bad_checksum};
  if (protocol != kProtocolUdp) return {ParseError::not_roce};
  if (total < kIpv4Bytes + kUdpBytes) return {ParseError::bad_ip_header};
  if (total > room) return {ParseError::truncated};
  return {ParseError::none, total - kIpv4Bytes};
}

IpResult parse_ipv6(std::span<const std::byte> ip, std::size_t room, FrameAddresses& a) {
  if (ip.size() < kIpv6Bytes) return {ParseError::truncated};
  WireReader in(ip);
  const auto first = in.get<std::uint32_t>();
  if (first >> 28 != 6) return {ParseError::bad_ip_header};
  a.traffic_class = static_cast<std::uint8_t>(first >> 20);
  a.flow_label = first & 0xfffff;
  const auto length = in.get<std::uint16_t>();
  const auto next = in.get<std::uint8_t>();
  a.hop_limit = in.get<std::uint8_t>();
  in.copy(a.source);
  in.copy(a.destination);
  if (next != kProtocolUdp) return {ParseError::not_roce};
  if (length < kUdpBytes) return {ParseError::bad_ip_header};
  if (kIpv6Bytes + length > room) return {ParseError::truncated};
  return {ParseError::none, length};
}

ParseError parse_transport(std::span<const std::byte> front, std::size_t at, std::size_t datagram, ParsedFrame& frame) {
  if (front.size() < at + kUdpBytes) return ParseError::truncated;
  WireReader in(front.subspan(at));
  frame.addresses.source_port = in.get<std::uint16_t>();
  if (in.get<std::uint16_t>() != kRoceUdpPort) return ParseError::not_roce;
  if (in.get<std::uint16_t>() != datagram) return ParseError::bad_udp_length;
  if (datagram < kUdpBytes + Bth::kBytes + kIcrcBytes) return ParseError::bad_length;
  const auto transport = front.subspan(at + kUdpBytes, std::min(front.size() - at, datagram) - kUdpBytes);
  if (transport.size() < Bth::kBytes) return ParseError::truncated;
  const auto* row = find_opcode(std::to_integer<std::uint8_t>(transport[0]));
  if (row == nullptr) return ParseError::bad_opcode;
  const auto fixed = kUdpBytes + encoded_size(*row) + kIcrcBytes;
  if (datagram < fixed) return ParseError::bad_length;
  const auto headers = decode(transport);
  if (!headers) return ParseError::truncated;
  frame.headers = *headers;
  if (headers->bth.version != 0) return ParseError::bad_version;
  const auto rest = datagram - fixed;
  if (rest % 4 != 0 || headers->bth.pad > rest) return ParseError::bad_length;
  frame.payload_offset = static_cast<std::uint32_t>(at + fixed - kIcrcBytes);
  frame.payload_bytes = static_cast<std::uint32_t>(rest - headers->bth.pad);
  return ParseError::none;
}

}  // namespace

bool is_ipv4_mapped(const Gid& gid) {
  constexpr std::array<std::uint8_t, kMappedPrefix> kPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(kPrefix.begin(), kPrefix.end(), gid.begin());
}

std::size_t link_header_bytes(std::span<const std::byte> frame) {
  if (frame.size() < kEthernetBytes) return kEthernetBytes;
  const auto type = WireReader(frame.subspan(kEthernetBytes - 2)).get<std::uint16_t>();
  return kEthernetBytes + (type == kEtherTypeVlan ? kVlanTagBytes : 0);
}

std::size_t frame_header_bytes(const FrameAddresses& addresses, Opcode opcode) {
  return kEthernetBytes + (addresses.tagged() ? kVlanTagBytes : 0) + (is_ipv4(addresses) ? kIpv4Bytes : kIpv6Bytes) +
         kUdpBytes + encoded_size(info(opcode));
}

std::size_t frame_header(const FrameAddresses& addresses, const Headers& headers, std::uint32_t payload_bytes,
                         std::span<std::byte, kMaxFrameHeader> out) {
  const auto udp_bytes = datagram_bytes(headers, payload_bytes);
  const bool ipv4 = is_ipv4(addresses);
  WireWriter writer(out);
  writer.copy(addresses.destination_mac);
  writer.copy(addresses.source_mac);
  if (addresses.tagged()) {
    writer.put(kEtherTypeVlan);
    writer.put(addresses.tag());
  }
  writer.put(ipv4 ? kEtherTypeIpv4 : kEtherTypeIpv6);
  ipv4 ? put_ipv4(addresses, udp_bytes, writer, out.data() + writer.written()) : put_ipv6(addresses, udp_bytes, writer);
  writer.put(addresses.source_port);
  writer.put(kRoceUdpPort);
  writer.put(static_cast<std::uint16_t>(udp_bytes));
  writer.put(std::uint16_t{0});  // no checksum: the ICRC protects the packet
  return writer.written() + encode(headers, out.subspan(writer.written()));
}

bool is_foreign(std::span<const std::byte> front) {
  constexpr std::size_t kProtocolAt = 9, kFragmentAt = 6, kNextHeaderAt = 6;
  if (front.size() < kEthernetBytes) return false;
  const auto at = [front]<class T>(std::size_t place, T) { return WireReader(front.subspan(place)).get<T>(); };
  const auto ip = link_header_bytes(front);
  if (front.size() < ip) return false;
  const auto type = at(ip - 2, std::uint16_t{});
  if (type != kEtherTypeIpv4 && type != kEtherTypeIpv6) return true;
  const bool ipv4 = type == kEtherTypeIpv4;
  const auto datagram = ip + (ipv4 ? kIpv4Bytes : kIpv6Bytes);
  if (front.size() < datagram) return false;
  if (at(ip + (ipv4 ? kProtocolAt : kNextHeaderAt), std::uint8_t{}) != kProtocolUdp) return true;
  const bool no_ports =
      ipv4 && (at(ip, std::uint8_t{}) != kIpv4Start || (at(ip + kFragmentAt, std::uint16_t{}) & kFragmentBits) != 0);
  return !no_ports && front.size() >= datagram + kUdpBytes && at(datagram + 2, std::uint16_t{}) != kRoceUdpPort;
}

ParsedFrame parse_frame(std::span<const std::byte> front, std::size_t frame_bytes) {
  ParsedFrame frame;
  if (front.size() < kEthernetBytes) return frame.error = ParseError::truncated, frame;
  WireReader in(front);
  in.copy(frame.addresses.destination_mac);
  in.copy(frame.addresses.source_mac);
  const auto link = link_header_bytes(front);
  if (front.size() < link) return frame.error = ParseError::truncated, frame;
  if (link != kEthernetBytes) take_tag(in, frame.addresses);
  const auto type = in.get<std::uint16_t>();
  if (type != kEtherTypeIpv4 && type != kEtherTypeIpv6) return frame.error = ParseError::not_ip, frame;
  const auto ip = front.subspan(link);
  const auto room = frame_bytes - link;
  const bool ipv4 = type == kEtherTypeIpv4;
  const auto result = ipv4 ? parse_ipv4(ip, room, frame.addresses) : parse_ipv6(ip, room, frame.addresses);
  frame.error = result.error;
  if (frame.error != ParseError::none) return frame;
  frame.error = parse_transport(front, link + (ipv4 ? kIpv4Bytes : kIpv6Bytes), result.datagram, frame);
  return frame;
}

void global_route_header(std::span<const std::byte> frame, std::span<std::byte, kGrhBytes> out) {
  const auto ip = frame.subspan(link_header_bytes(frame));
  const bool ipv6 = std::to_integer<unsigned>(ip.front()) >> 4 == 6;
  const std::size_t at = ipv6 ? 0 : kGrhBytes - kIpv4Bytes;
  std::ranges::fill(out.first(at), std::byte{0});
  std::ranges::copy(ip.first(kGrhBytes - at), out.begin() + static_cast<std::ptrdiff_t>(at));
}

void global_route_header(const FrameAddresses& addresses, const Headers& headers, std::uint32_t payload_bytes,
                         std::span<std::byte, kGrhBytes> out) {
  const auto udp_bytes = datagram_bytes(headers, payload_bytes);
  const std::size_t at = is_ipv4(addresses) ? kGrhBytes - kIpv4Bytes : 0;
  std::ranges::fill(out.first(at), std::byte{0});
  WireWriter writer(out.subspan(at));
  at == 0 ? put_ipv6(addresses, udp_bytes, writer) : put_ipv4(addresses, udp_bytes, writer, out.data() + at);
}

std::string_view text(ParseError error) {
  switch (error) {
    case ParseError::none: return "none";
    case ParseError::truncated: return "shorter than the lengths in its headers";
    case ParseError::not_ip: return "not IP";
    case ParseError::bad_ip_header: return "IP header";
    case ParseError::bad_checksum: return "IP checksum";
    case ParseError::not_roce: return "not RoCE";
    case ParseError::bad_udp_length: return "UDP length";
    case ParseError::bad_version: return "BTH version";
    case ParseError::bad_opcode: return "BTH opcode";
    case ParseError::bad_length: return "length";
  }
  return "unknown";
}

}  // namespace rnicsim::roce
