// SPDX-License-Identifier: Apache-2.0
#include "model/roce/icrc.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <array>

#include "model/roce/frame_sizes.h"

namespace rnicsim::roce {
namespace {

constexpr std::size_t kPseudoLrh = 8;
constexpr std::byte kOnes{0xff};

void mask_ipv4(std::byte* ip) {
  ip[1] = kOnes;            // type of service
  ip[8] = kOnes;            // time to live
  ip[10] = ip[11] = kOnes;  // header checksum
}

void mask_ipv6(std::byte* ip) {
  ip[0] |= std::byte{0x0f};  // traffic class and flow label
  ip[1] = ip[2] = ip[3] = kOnes;
  ip[7] = kOnes;  // hop limit
}

std::uint32_t chain(std::uint32_t crc, std::span<const std::byte> bytes) {
  return crc32_gzip_refl(crc, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

}  // namespace

std::uint32_t icrc(std::span<const std::byte> headers, std::span<const std::byte> payload,
                   std::span<const std::byte> pad) {
  std::array<std::byte, kPseudoLrh + kMaxFrameHeader> masked;
  const auto bytes = std::min(headers.size(), kMaxFrameHeader);
  std::fill_n(masked.begin(), kPseudoLrh, kOnes);
  std::copy_n(headers.begin(), bytes, masked.begin() + kPseudoLrh);
  std::byte* ip = masked.data() + kPseudoLrh;
  const bool ipv6 = std::to_integer<int>(ip[0]) >> 4 == 6;
  ipv6 ? mask_ipv6(ip) : mask_ipv4(ip);
  std::byte* udp = ip + (ipv6 ? kIpv6Bytes : kIpv4Bytes);
  udp[6] = udp[7] = kOnes;     // checksum
  udp[kUdpBytes + 4] = kOnes;  // BTH: FECN, BECN and reserved bits
  const auto crc = chain(chain(0, {masked.data(), kPseudoLrh + bytes}), payload);
  return pad.empty() ? crc : chain(crc, pad);
}

}  // namespace rnicsim::roce
