// SPDX-License-Identifier: Apache-2.0
#include "model/nic/packets/frame_checksums.h"

#include <cstdint>
#include <optional>

#include "model/nic/packets/network_headers.h"

namespace rnicsim::nic {
namespace {

using namespace network;

constexpr std::size_t kIpv4Checksum = 10, kTcpChecksum = 16, kUdpChecksum = 6;

// Ones' complement sum of 16-bit words; an odd last byte is padded with zero.
class Sum {
 public:
  void add(unsigned word) { sum_ += word; }
  void add(std::span<const std::byte> bytes) {
    for (; bytes.size() >= 2; bytes = bytes.subspan(2)) add(word_at(bytes, 0));
    if (!bytes.empty()) add(byte_at(bytes, 0) << 8);
  }
  std::uint16_t value() const {
    auto sum = sum_;
    while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
    return static_cast<std::uint16_t>(sum);
  }

 private:
  std::uint64_t sum_ = 0;
};

// Ranges that the checksums cover, as offsets in the frame.
struct Covered {
  std::size_t ip = 0;
  std::size_t ip_header = 0;  // bytes; 0: IPv6, which has no checksum
  std::size_t addresses = 0;
  std::size_t addresses_bytes = 0;
  unsigned protocol = 0;
  std::size_t transport = 0;        // after the IP header
  std::size_t transport_bytes = 0;  // from IP's length, without padding of the frame
  bool fragment = false;

  // Offset of the checksum of TCP or UDP; nullopt: neither.
  std::optional<std::size_t> checksum() const {
    if (protocol == protocol::kTcp && transport_bytes >= kLeastTcp) return transport + kTcpChecksum;
    if (protocol == protocol::kUdp && transport_bytes >= kUdp) return transport + kUdpChecksum;
    return std::nullopt;
  }
};

std::optional<Covered> ipv4(std::span<const std::byte> frame, std::size_t at) {
  constexpr unsigned kMoreOrOffset = 0x3fff;
  if (frame.size() < at + kLeastIpv4 || byte_at(frame, at) >> 4 != 4) return std::nullopt;
  const std::size_t header = (byte_at(frame, at) & 0xf) * 4, total = word_at(frame, at + 2);
  if (header < kLeastIpv4 || total < header || frame.size() - at < total) return std::nullopt;
  return Covered{.ip = at,
                 .ip_header = header,
                 .addresses = at + 12,
                 .addresses_bytes = 8,
                 .protocol = byte_at(frame, at + 9),
                 .transport = at + header,
                 .transport_bytes = total - header,
                 .fragment = (word_at(frame, at + 6) & kMoreOrOffset) != 0};
}

// Skips extension headers before the transport header.
std::optional<Covered> ipv6(std::span<const std::byte> frame, std::size_t at) {
  if (frame.size() < at + kIpv6 || byte_at(frame, at) >> 4 != 6) return std::nullopt;
  const std::size_t end = at + kIpv6 + word_at(frame, at + 4);
  if (frame.size() < end) return std::nullopt;
  Covered covered{.ip = at, .addresses = at + 8, .addresses_bytes = 32};
  covered.protocol = byte_at(frame, at + 6);
  covered.transport = at + kIpv6;
  while (is_extension(covered.protocol)) {
    const bool fragment = covered.protocol == protocol::kFragment;
    if (end - covered.transport < kExtensionUnit) return std::nullopt;
    const std::size_t bytes = fragment ? kExtensionUnit : (byte_at(frame, covered.transport + 1) + 1) * kExtensionUnit;
    if (end - covered.transport < bytes) return std::nullopt;
    covered.fragment |= fragment;
    covered.protocol = byte_at(frame, covered.transport);
    covered.transport += bytes;
  }
  covered.transport_bytes = end - covered.transport;
  return covered;
}

std::optional<Covered> covered_in(std::span<const std::byte> frame) {
  const auto carried = carried_in(frame);
  if (carried && carried->ether_type == type::kIpv4) return ipv4(frame, carried->at);
  if (carried && carried->ether_type == type::kIpv6) return ipv6(frame, carried->at);
  return std::nullopt;
}

// Sum over pseudo header, header and data (RFC 793, 768, 8200).
std::uint16_t transport_sum(std::span<const std::byte> frame, const Covered& covered) {
  Sum sum;
  sum.add(frame.subspan(covered.addresses, covered.addresses_bytes));
  sum.add(covered.protocol);
  sum.add(static_cast<unsigned>(covered.transport_bytes));
  sum.add(frame.subspan(covered.transport, covered.transport_bytes));
  return sum.value();
}

std::uint16_t header_sum(std::span<const std::byte> frame, const Covered& covered) {
  Sum sum;
  sum.add(frame.subspan(covered.ip, covered.ip_header));
  return sum.value();
}

constexpr std::uint16_t kRight = 0xffff;  // sum over data and its own checksum

}  // namespace

bool checksums_right(std::span<const std::byte> frame) {
  const auto covered = covered_in(frame);
  if (!covered || covered->fragment) return false;
  if (covered->ip_header != 0 && header_sum(frame, *covered) != kRight) return false;
  const auto checksum = covered->checksum();
  if (!checksum) return covered->protocol != protocol::kTcp && covered->protocol != protocol::kUdp;
  // UDP over IPv4 may have no checksum.
  const bool none = covered->protocol == protocol::kUdp && word_at(frame, *checksum) == 0;
  return none ? covered->ip_header != 0 : transport_sum(frame, *covered) == kRight;
}

void fill_checksums(std::span<std::byte> frame) {
  const auto covered = covered_in(frame);
  if (!covered) return;
  if (covered->ip_header != 0) {
    put_word(frame, covered->ip + kIpv4Checksum, 0);
    put_word(frame, covered->ip + kIpv4Checksum, static_cast<std::uint16_t>(~header_sum(frame, *covered)));
  }
  const auto checksum = covered->checksum();
  if (!checksum || covered->fragment) return;
  put_word(frame, *checksum, 0);
  const auto value = static_cast<std::uint16_t>(~transport_sum(frame, *covered));
  // A UDP checksum of 0 means "no checksum".
  put_word(frame, *checksum, value == 0 && covered->protocol == protocol::kUdp ? kRight : value);
}

}  // namespace rnicsim::nic
