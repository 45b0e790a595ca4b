// SPDX-License-Identifier: Apache-2.0
#include "model/host/cm/address_header.h"

#include <algorithm>

namespace rnicsim::host {
namespace {

constexpr std::size_t kIpVersion = 1;
constexpr std::size_t kPortOffset = 2;
constexpr std::size_t kSource = 4;
constexpr std::size_t kDestination = 20;

// An IPv4 address takes the last four bytes of the field, after zeros.
void put_address(const IpAddress& address, std::uint8_t* field) {
  const auto from = address.bytes.begin() + (address.ipv6 ? 0 : 12);
  std::copy(from, address.bytes.end(), field + (address.ipv6 ? 0 : 12));
}

IpAddress get(bool ipv6, const std::uint8_t* field) {
  IpAddress address;
  address.ipv6 = ipv6;
  const std::size_t skipped = ipv6 ? 0 : 12;
  std::copy(field + skipped, field + 16, address.bytes.begin() + std::ptrdiff_t(skipped));
  return address;
}

}  // namespace

std::array<std::uint8_t, AddressHeader::kBytes> AddressHeader::encode() const {
  std::array<std::uint8_t, kBytes> bytes{};
  bytes[kIpVersion] = source.ipv6 ? 0x60 : 0x40;
  bytes[kPortOffset] = std::uint8_t(source.port >> 8);
  bytes[kPortOffset + 1] = std::uint8_t(source.port);
  put_address(source, bytes.data() + kSource);
  put_address(destination, bytes.data() + kDestination);
  return bytes;
}

std::optional<AddressHeader> AddressHeader::decode(std::span<const std::uint8_t, kBytes> bytes) {
  const std::uint8_t version = bytes[kIpVersion] >> 4;
  if (bytes[0] != 0 || (version != 4 && version != 6)) return std::nullopt;
  AddressHeader header{get(version == 6, bytes.data() + kSource), get(version == 6, bytes.data() + kDestination)};
  header.source.port = std::uint16_t(bytes[kPortOffset] << 8 | bytes[kPortOffset + 1]);
  return header;
}

}  // namespace rnicsim::host
