// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/capture/wire_capture.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/roce/icrc.h"
#include "sim/config/config_error.h"

namespace rnicsim::sim::replay {
namespace {

constexpr std::uint16_t kIpv4 = 0x0800;
constexpr std::uint16_t kIpv6 = 0x86dd;
constexpr std::uint16_t kVlan = 0x8100;
constexpr std::size_t kEtherTypeAt = 12;
constexpr std::size_t kVlanBytes = 4;
constexpr std::uint8_t kUdp = 17;
constexpr std::size_t kMappedPrefix = 12;

std::uint8_t byte_at(std::span<const std::byte> bytes, std::size_t at) {
  return at < bytes.size() ? std::to_integer<std::uint8_t>(bytes[at]) : std::uint8_t{0};
}
std::uint16_t half_at(std::span<const std::byte> bytes, std::size_t at) {
  return static_cast<std::uint16_t>(byte_at(bytes, at) << 8 | byte_at(bytes, at + 1));
}

// Less strict than the parser, so that refused packets are counted.
bool for_roce_port(std::span<const std::byte> frame) {
  const auto type = half_at(frame, kEtherTypeAt);
  const auto ip = frame.subspan(std::min(frame.size(), roce::kEthernetBytes));
  if (type == kIpv4) {
    const bool first_fragment = (half_at(ip, 6) & 0x1fff) == 0;
    const std::size_t header = std::size_t{4} * (byte_at(ip, 0) & 0xfu);
    return first_fragment && byte_at(ip, 9) == kUdp && half_at(ip, header + 2) == roce::kRoceUdpPort;
  }
  return type == kIpv6 && byte_at(ip, 6) == kUdp && half_at(ip, roce::kIpv6Bytes + 2) == roce::kRoceUdpPort;
}

// A switch's mirror port keeps the VLAN tag; the ICRC does not cover the tag.
std::vector<std::byte> without_vlan_tag(const CapturedFrame& frame) {
  auto bytes = frame.bytes;
  if (half_at(bytes, kEtherTypeAt) == kVlan && bytes.size() >= kEtherTypeAt + kVlanBytes)
    bytes.erase(bytes.begin() + kEtherTypeAt, bytes.begin() + kEtherTypeAt + kVlanBytes);
  return bytes;
}

bool icrc_right(std::span<const std::byte> frame, const roce::ParsedFrame& parsed) {
  const auto payload = frame.subspan(parsed.payload_offset, parsed.payload_bytes);
  const auto trailer = frame.subspan(parsed.payload_offset + parsed.payload_bytes);
  const auto pad = parsed.headers.bth.pad;
  const auto headers = frame.first(parsed.payload_offset).subspan(roce::kEthernetBytes);
  const auto crc = roce::icrc(headers, payload, trailer.first(pad));
  for (std::size_t i = 0; i < roce::kIcrcBytes; ++i)
    if (trailer[pad + i] != std::byte(crc >> (8 * i))) return false;
  return true;
}

Payload grh_of(std::span<const std::byte> frame, const roce::ParsedFrame& parsed) {
  if (roce::info(parsed.headers.bth.opcode).transport != roce::Transport::ud) return {};
  Payload grh(roce::kGrhBytes);
  roce::global_route_header(frame, std::span<std::byte, roce::kGrhBytes>(grh.writable().data(), roce::kGrhBytes));
  return grh;
}

}  // namespace

std::size_t WireCapture::icrc_right() const {
  return static_cast<std::size_t>(std::ranges::count_if(packets, &WirePacket::icrc_right));
}

std::vector<roce::Gid> WireCapture::addresses() const {
  std::vector<roce::Gid> found;
  for (const auto& packet : packets)
    for (const auto& gid : {packet.addresses.source, packet.addresses.destination})
      if (std::ranges::find(found, gid) == found.end()) found.push_back(gid);
  return found;
}

WireCapture parse_capture(std::span<const CapturedFrame> frames) {
  WireCapture capture;
  capture.frames = frames.size();
  for (const auto& frame : frames) capture.end = std::max(capture.end, frame.time);
  for (const auto& frame : frames) {
    const auto bytes = without_vlan_tag(frame);
    if (!for_roce_port(bytes)) continue;
    if (frame.bytes.size() < frame.length)
      throw ConfigError(fmt::format("frame {}: the capture holds {} of its {} bytes; whole frames are needed",
                                    frame.number, frame.bytes.size(), frame.length));
    auto parsed = roce::parse_frame(bytes, bytes.size());
    // CNPs are not replayed.
    if (parsed.error == roce::ParseError::none &&
        roce::info(parsed.headers.bth.opcode).operation == roce::Operation::notify)
      parsed.error = roce::ParseError::bad_opcode;
    if (parsed.error != roce::ParseError::none) {
      capture.unparsed.push_back({frame.number, parsed.error});
      continue;
    }
    const auto payload = std::span(bytes).subspan(parsed.payload_offset, parsed.payload_bytes);
    capture.packets.push_back({frame.number, parsed.addresses, parsed.headers, Payload::copy_of(payload),
                               icrc_right(bytes, parsed), frame.time, grh_of(bytes, parsed)});
  }
  if (capture.roce_frames() == 0)
    throw ConfigError(fmt::format("no RoCEv2 packet is among the capture's {} frames", capture.frames));
  return capture;
}

std::optional<roce::Gid> parse_address(const std::string& text) {
  roce::Gid gid{};
  if (inet_pton(AF_INET6, text.c_str(), gid.data()) == 1) return gid;
  gid = {};
  gid[kMappedPrefix - 2] = gid[kMappedPrefix - 1] = 0xff;
  if (inet_pton(AF_INET, text.c_str(), gid.data() + kMappedPrefix) == 1) return gid;
  return std::nullopt;
}

std::string address_text(const roce::Gid& gid) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool ipv4 = roce::is_ipv4_mapped(gid);
  inet_ntop(ipv4 ? AF_INET : AF_INET6, gid.data() + (ipv4 ? kMappedPrefix : 0), text.data(), text.size());
  return text.data();
}

}  // namespace rnicsim::sim::replay
