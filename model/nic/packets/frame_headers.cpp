// SPDX-License-Identifier: Apache-2.0
#include "model/nic/packets/frame_headers.h"

#include <algorithm>

#include "model/nic/packets/network_headers.h"

namespace rnicsim::nic {
namespace {

using namespace network;

constexpr unsigned kVxlanPort = 4789;

void copy(Bytes from, std::size_t at, std::size_t bytes, FlowFields& to, std::size_t offset) {
  std::ranges::copy(from.subspan(at, bytes), to.begin() + static_cast<std::ptrdiff_t>(offset));
}

bool is_mpls(unsigned ether_type) { return ether_type == type::kMpls || ether_type == type::kMplsGroup; }

}  // namespace

// Reads one layer; the content of a tunnel is the inner layer.
struct FrameHeaders::Reader {
  Layer& layer;
  Layer* inner;  // nullptr: this is the inner layer; tunnels in it are not followed

  FlowFields& add(FlowHeader header) {
    layer.present = static_cast<std::uint16_t>(layer.present | 1u << static_cast<unsigned>(header));
    auto& fields = layer.fields[static_cast<std::size_t>(header)];
    fields = {};
    return fields;
  }
  template <class Read>
  void tunnel(Read&& read) {
    if (inner == nullptr) return;
    Reader reader{*inner, nullptr};
    read(reader);
  }

  void ethernet(Bytes frame) {
    if (frame.size() < kAddresses + 2) return;
    auto& fields = add(FlowHeader::ethernet);
    copy(frame, 0, kAddresses, fields, 0);
    auto at = kAddresses;
    for (std::size_t tags = 0; is_tag(word_at(frame, at)); ++tags) {
      if (tags == kMostTags || frame.size() < at + kTag + 2) return;
      if (tags == 0) copy(frame, at + 2, 2, fields, 14);
      at += kTag;
    }
    copy(frame, at, 2, fields, 12);
    carried(word_at(frame, at), frame.subspan(at + 2));
  }

  void carried(unsigned ether_type, Bytes rest) {
    if (ether_type == type::kIpv4) ipv4(rest);
    if (ether_type == type::kIpv6) ipv6(rest);
    if (is_mpls(ether_type)) mpls(rest);
  }

  void mpls(Bytes rest) {
    constexpr std::size_t kLabel = 4;
    constexpr std::byte kBottom{1};
    if (rest.size() < kLabel) return;
    copy(rest, 0, kLabel, add(FlowHeader::mpls), 0);
    while (rest.size() >= kLabel && (rest[2] & kBottom) == std::byte{}) rest = rest.subspan(kLabel);
    if (rest.size() <= kLabel) return;
    rest = rest.subspan(kLabel);
    const auto version = byte_at(rest, 0) >> 4;
    if (version == 4) ipv4(rest);
    if (version == 6) ipv6(rest);
  }

  void ipv4(Bytes packet) {
    if (packet.size() < kLeastIpv4 || byte_at(packet, 0) >> 4 != 4) return;
    const std::size_t header = (byte_at(packet, 0) & 0xf) * 4, total = word_at(packet, 2);
    if (header < kLeastIpv4 || total < header || packet.size() < header) return;
    const auto fragment = word_at(packet, 6);
    auto& fields = add(FlowHeader::ipv4);
    copy(packet, 12, 8, fields, 0);
    fields[8] = packet[9];
    fields[9] = packet[1];
    fields[10] = packet[8];
    fields[11] = std::byte(fragment >> 13 & 3);
    constexpr unsigned kOffset = 0x1fff;
    if ((fragment & kOffset) != 0) return;
    transport(byte_at(packet, 9), packet.first(std::min(packet.size(), total)).subspan(header));
  }

  void ipv6(Bytes packet) {
    if (packet.size() < kIpv6 || byte_at(packet, 0) >> 4 != 6) return;
    const auto payload = std::min<std::size_t>(word_at(packet, 4), packet.size() - kIpv6);
    auto& fields = add(FlowHeader::ipv6);
    copy(packet, 8, 32, fields, 0);
    copy(packet, 1, 3, fields, 33);
    fields[33] &= std::byte{0x0f};
    fields[37] = std::byte((byte_at(packet, 0) << 4 | byte_at(packet, 1) >> 4) & 0xff);
    fields[38] = packet[7];
    auto next = byte_at(packet, 6);
    auto rest = packet.subspan(kIpv6, payload);
    const bool whole = pass_extensions(next, rest);
    fields[36] = std::byte(next);
    if (whole) transport(next, rest);
  }

  // False: no header follows.
  static bool pass_extensions(unsigned& next, Bytes& rest) {
    constexpr unsigned kOffset = 0xfff8;
    while (is_extension(next)) {
      if (rest.size() < kExtensionUnit) return false;
      const bool fragment = next == protocol::kFragment;
      const std::size_t bytes = fragment ? kExtensionUnit : (byte_at(rest, 1) + 1) * kExtensionUnit;
      if (rest.size() < bytes) return false;
      const bool later = fragment && (word_at(rest, 2) & kOffset) != 0;
      next = byte_at(rest, 0);
      rest = rest.subspan(bytes);
      if (later) return false;
    }
    return true;
  }

  void transport(unsigned number, Bytes rest) {
    switch (number) {
      case protocol::kTcp: return ports(FlowHeader::tcp, rest, kLeastTcp);
      case protocol::kUdp: return udp(rest);
      case protocol::kEsp:
        if (rest.size() >= 8) copy(rest, 0, 8, add(FlowHeader::esp), 0);
        return;
      case protocol::kGre: return gre(rest);
      case protocol::kIpv4: return tunnel([rest](Reader& reader) { reader.ipv4(rest); });
      case protocol::kIpv6: return tunnel([rest](Reader& reader) { reader.ipv6(rest); });
      default: return;
    }
  }

  void ports(FlowHeader header, Bytes rest, std::size_t least) {
    if (rest.size() < least) return;
    auto& fields = add(header);
    copy(rest, 2, 2, fields, 0);
    copy(rest, 0, 2, fields, 2);
  }

  void udp(Bytes rest) {
    constexpr std::size_t kVxlan = 8;
    ports(FlowHeader::udp, rest, kUdp);
    if (rest.size() < kUdp + kVxlan || word_at(rest, 2) != kVxlanPort) return;
    copy(rest, kUdp + 4, 3, add(FlowHeader::vxlan), 1);
    tunnel([frame = rest.subspan(kUdp + kVxlan)](Reader& reader) { reader.ethernet(frame); });
  }

  // RFC 2784, 2890: words for checksum, key and sequence number follow according to the flags.
  void gre(Bytes rest) {
    constexpr std::size_t kWord = 4;
    constexpr unsigned kChecksum = 0x8000, kKey = 0x2000, kSequence = 0x1000;
    if (rest.size() < kWord) return;
    const auto flags = word_at(rest, 0), ether_type = word_at(rest, 2);
    const std::size_t key = (flags & kChecksum) != 0 ? 2 * kWord : kWord;
    const std::size_t bytes = key + ((flags & kKey) != 0 ? kWord : 0) + ((flags & kSequence) != 0 ? kWord : 0);
    if (rest.size() < bytes) return;
    auto& fields = add(FlowHeader::gre);
    copy(rest, 0, 4, fields, 0);
    if ((flags & kKey) != 0) copy(rest, key, kWord, fields, 4);
    const auto packet = rest.subspan(bytes);
    tunnel([ether_type, packet](Reader& reader) {
      ether_type == type::kEthernet ? reader.ethernet(packet) : reader.carried(ether_type, packet);
    });
  }
};

FrameHeaders::FrameHeaders(std::span<const std::byte> frame) { Reader{outer_, &inner_}.ethernet(frame); }

}  // namespace rnicsim::nic
