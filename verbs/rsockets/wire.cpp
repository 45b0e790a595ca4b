// SPDX-License-Identifier: Apache-2.0
#include "verbs/rsockets/wire.h"

#include <arpa/inet.h>
#include <endian.h>

#include <algorithm>

namespace rnicsim::rsockets {

namespace {

constexpr std::uint8_t kBigEndianFlag = 1;
constexpr std::uint8_t kMapsFlag = 2;

struct ConnectionBytes {
  std::uint8_t version;
  std::uint8_t flags;
  std::uint16_t credits;
  std::uint8_t reserved[3];
  std::uint8_t iomap_entries;
  WireExtent targets;
  WireExtent buffer;
};
static_assert(sizeof(ConnectionBytes) == kConnectionDataBytes && offsetof(ConnectionBytes, iomap_entries) == 7 &&
              offsetof(ConnectionBytes, targets) == 8 && offsetof(ConnectionBytes, buffer) == 24);

WireExtent big_endian(const Extent& extent) {
  return {htobe64(extent.address), htobe32(extent.key), htobe32(extent.length)};
}
Extent from_big_endian(const WireExtent& wire) {
  return {be64toh(wire.address), be32toh(wire.key), be32toh(wire.length)};
}

struct DatagramBytes {
  std::uint8_t version;
  std::uint8_t length;
  std::uint16_t port;
  union {
    std::uint32_t v4;
    struct {
      std::uint32_t flow;
      std::uint8_t address[16];
    } v6;
  };
};
static_assert(sizeof(DatagramBytes) == kDatagramHeaderV6 && offsetof(DatagramBytes, v4) == 4);

struct LookupBytes {
  std::uint32_t tag;
  std::uint8_t version;
  std::uint8_t op;
  std::uint8_t length;
  std::uint8_t reserved;
  std::uint32_t qp_number;
  std::uint8_t address[16];
};
static_assert(sizeof(LookupBytes) == kLookupHeaderV6 && offsetof(LookupBytes, address) == 12);

constexpr std::uint32_t kQpNumberMask = 0xffffff;
constexpr int kExactBits = 7;  // in a scaled count: numbers up to 2^7 are exact

}  // namespace

std::array<std::byte, kConnectionDataBytes> encode(const ConnectionData& data) {
  ConnectionBytes bytes{};
  bytes.version = data.version;
  bytes.flags = std::uint8_t((data.big_endian ? kBigEndianFlag : 0) | (data.maps ? kMapsFlag : 0));
  bytes.credits = htobe16(data.credits);
  bytes.iomap_entries = scaled_iomap_entries(data.iomap_entries);
  bytes.targets = big_endian(data.targets);
  bytes.buffer = big_endian(data.buffer);
  return std::bit_cast<std::array<std::byte, kConnectionDataBytes>>(bytes);
}

std::optional<ConnectionData> decode_connection_data(const void* bytes, std::size_t length) {
  if (bytes == nullptr || length < kConnectionDataBytes) return std::nullopt;
  ConnectionBytes raw;
  std::memcpy(&raw, bytes, sizeof raw);
  ConnectionData data;
  data.version = raw.version;
  data.big_endian = (raw.flags & kBigEndianFlag) != 0;
  data.maps = (raw.flags & kMapsFlag) != 0;
  data.credits = be16toh(raw.credits);
  data.iomap_entries = data.maps ? unscaled_iomap_entries(raw.iomap_entries) : 0;
  data.targets = from_big_endian(raw.targets);
  data.buffer = from_big_endian(raw.buffer);
  return data;
}

std::uint8_t scaled_iomap_entries(std::uint16_t wanted) {
  constexpr std::uint16_t kExact = 1 << kExactBits;
  if (wanted <= kExact) return std::uint8_t(wanted);
  const int steps = std::min(wanted >> 8, kExact - 1);
  return std::uint8_t(kExact | steps);
}
std::uint16_t unscaled_iomap_entries(std::uint8_t scaled) {
  constexpr std::uint8_t kExact = 1 << kExactBits;
  return scaled <= kExact ? scaled : std::uint16_t((scaled & ~kExact) << 8);
}

socklen_t length_of(const sockaddr& address) {
  return address.sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

DatagramHeader datagram_header(const SocketAddress& source) {
  DatagramBytes bytes{};
  if (source.any.sa_family == AF_INET6) {
    bytes.version = 6;
    bytes.length = kDatagramHeaderV6;
    bytes.port = source.v6.sin6_port;
    bytes.v6.flow = source.v6.sin6_flowinfo;
    std::memcpy(bytes.v6.address, &source.v6.sin6_addr, sizeof bytes.v6.address);
  } else {
    bytes.version = 4;
    bytes.length = kDatagramHeaderV4;
    bytes.port = source.v4.sin_port;
    bytes.v4 = source.v4.sin_addr.s_addr;
  }
  DatagramHeader header;
  std::memcpy(header.bytes.data(), &bytes, sizeof bytes);
  header.length = bytes.length;
  return header;
}

std::optional<std::size_t> parse_datagram_header(const std::byte* bytes, std::size_t length, SocketAddress& source) {
  if (length < kDatagramHeaderV4) return std::nullopt;
  DatagramBytes raw{};
  std::memcpy(&raw, bytes, std::min(length, sizeof raw));
  source = {};
  if (raw.version == 4 && raw.length == kDatagramHeaderV4) {
    source.v4.sin_family = AF_INET;
    source.v4.sin_port = raw.port;
    source.v4.sin_addr.s_addr = raw.v4;
    return kDatagramHeaderV4;
  }
  if (raw.version == 6 && raw.length == kDatagramHeaderV6 && length >= kDatagramHeaderV6) {
    source.v6.sin6_family = AF_INET6;
    source.v6.sin6_port = raw.port;
    source.v6.sin6_flowinfo = raw.v6.flow;
    std::memcpy(&source.v6.sin6_addr, raw.v6.address, sizeof raw.v6.address);
    return kDatagramHeaderV6;
  }
  return std::nullopt;
}

std::array<std::byte, kLookupHeaderV6> encode(const LookupHeader& header) {
  LookupBytes bytes{};
  bytes.tag = htobe32(kLookupTag);
  bytes.version = header.v6 ? 6 : 4;
  bytes.op = std::uint8_t(header.op);
  bytes.length = std::uint8_t(header.length());
  bytes.qp_number = htobe32(header.qp_number & kQpNumberMask);
  std::memcpy(bytes.address, header.address.data(), header.v6 ? 16 : 4);
  return std::bit_cast<std::array<std::byte, kLookupHeaderV6>>(bytes);
}

std::optional<LookupHeader> parse_lookup_header(const std::byte* bytes, std::size_t length) {
  if (length < kLookupHeaderV4) return std::nullopt;
  LookupBytes raw{};
  std::memcpy(&raw, bytes, std::min(length, sizeof raw));
  LookupHeader header;
  header.op = Op(raw.op);
  header.v6 = raw.version == 6;
  if (raw.tag != htobe32(kLookupTag) || (raw.version != 4 && raw.version != 6) || raw.length != header.length() ||
      length < header.length() || (header.op != Op::data && header.op != Op::control)) {
    return std::nullopt;
  }
  header.qp_number = be32toh(raw.qp_number) & kQpNumberMask;
  std::memcpy(header.address.data(), raw.address, header.v6 ? 16 : 4);
  return header;
}

}  // namespace rnicsim::rsockets
