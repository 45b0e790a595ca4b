// SPDX-License-Identifier: Apache-2.0
// Protocol between two rsockets: immediate data of messages, private data of connections, entries written to the
// peer's memory, and headers of datagrams. The layouts are those of rdma-core.
#pragma once

#include <netinet/in.h>

#include <array>
#include <bit>
#include <boost/endian/conversion.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

namespace rnicsim::rsockets {

// Immediate data: 3 bits of operation, 29 bits of value.
enum class Op : std::uint8_t {
  data = 0,          // value: bytes in the receiver's next buffer
  direct_write = 2,  // never sent: marks an RDMA write to a mapped buffer of the peer
  grant = 4,         // value: data messages granted so far, modulo 2^16; a target entry may have changed
  iomap = 6,         // value: index of a changed mapping; uses a place of the window like data
  control = 7,
};
enum class Control : std::uint32_t { disconnect = 0, keepalive = 1, shutdown = 2 };

inline constexpr std::uint32_t kMessageValueBits = 29;
inline constexpr std::uint32_t kMaxMessageValue = (1u << kMessageValueBits) - 1;

struct Message {
  Op op = Op::data;
  std::uint32_t value = 0;
  friend bool operator==(const Message&, const Message&) = default;
};

// Immediate data in the CPU's byte order.
constexpr std::uint32_t encode(Message message) {
  return std::uint32_t(message.op) << kMessageValueBits | (message.value & kMaxMessageValue);
}
constexpr Message decode_message(std::uint32_t immediate) {
  return {Op(immediate >> kMessageValueBits), immediate & kMaxMessageValue};
}
constexpr Message control_message(Control control) { return {Op::control, std::uint32_t(control)}; }

// Memory of one side that the other side may write to.
struct Extent {
  std::uint64_t address = 0;
  std::uint32_t key = 0;
  std::uint32_t length = 0;
  friend bool operator==(const Extent&, const Extent&) = default;
};

// An extent that the peer addresses by `offset`.
struct Mapping {
  std::uint64_t offset = 0;
  Extent extent;
  friend bool operator==(const Mapping&, const Mapping&) = default;
};

// Layouts in memory, in the byte order of the reading side.
struct WireExtent {
  std::uint64_t address;
  std::uint32_t key;
  std::uint32_t length;
};
struct WireMapping {
  std::uint64_t offset;
  WireExtent extent;
};
static_assert(sizeof(WireExtent) == 16 && offsetof(WireExtent, key) == 8 && offsetof(WireExtent, length) == 12);
static_assert(sizeof(WireMapping) == 24 && offsetof(WireMapping, extent) == 8);

constexpr WireExtent encode(const Extent& extent, bool swapped) {
  if (!swapped) return {extent.address, extent.key, extent.length};
  using boost::endian::endian_reverse;
  return {endian_reverse(extent.address), endian_reverse(extent.key), endian_reverse(extent.length)};
}
constexpr WireMapping encode(const Mapping& mapping, bool swapped) {
  return {swapped ? boost::endian::endian_reverse(mapping.offset) : mapping.offset, encode(mapping.extent, swapped)};
}
constexpr Extent decode(const WireExtent& wire) { return {wire.address, wire.key, wire.length}; }
constexpr Mapping decode(const WireMapping& wire) { return {wire.offset, decode(wire.extent)}; }

// Private data of REQ and REP; numbers are big-endian.
inline constexpr std::size_t kConnectionDataBytes = 40;
inline constexpr std::uint8_t kConnectionVersion = 1;

struct ConnectionData {
  std::uint8_t version = kConnectionVersion;
  bool big_endian = std::endian::native == std::endian::big;
  bool maps = true;                 // entries of iomaps follow the entries of targets
  std::uint16_t credits = 0;        // data messages that this side can receive at first
  std::uint16_t iomap_entries = 0;  // a value of round_iomap_entries()
  Extent targets;                   // list of targets; length: entries, not bytes
  Extent buffer;                    // the peer's first target
  friend bool operator==(const ConnectionData&, const ConnectionData&) = default;
};

std::array<std::byte, kConnectionDataBytes> encode(const ConnectionData& data);
// nullopt: too short.
std::optional<ConnectionData> decode_connection_data(const void* bytes, std::size_t length);

// The number of iomaps has eight bits: up to 128 exactly, above in steps of 256. Returns the largest such number that
// does not exceed `wanted`.
std::uint8_t scaled_iomap_entries(std::uint16_t wanted);
std::uint16_t unscaled_iomap_entries(std::uint8_t scaled);
inline std::uint16_t round_iomap_entries(std::uint16_t wanted) {
  return unscaled_iomap_entries(scaled_iomap_entries(wanted));
}

union SocketAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
  sockaddr_storage storage;
};
socklen_t length_of(const sockaddr& address);

// Header of a datagram between two UD QPs; names the sender.
inline constexpr std::size_t kDatagramHeaderV4 = 8;
inline constexpr std::size_t kDatagramHeaderV6 = 24;

struct DatagramHeader {
  std::array<std::byte, kDatagramHeaderV6> bytes;
  std::size_t length = 0;
};
DatagramHeader datagram_header(const SocketAddress& source);
// Sets the source and returns the length of the header. nullopt: not a valid header.
std::optional<std::size_t> parse_datagram_header(const std::byte* bytes, std::size_t length, SocketAddress& source);

// Header of a datagram sent by UDP while the peer's QP is unknown; names the sender's QP.
inline constexpr std::uint32_t kLookupTag = 0x55555555;
inline constexpr std::size_t kLookupHeaderV4 = 16;
inline constexpr std::size_t kLookupHeaderV6 = 28;

struct LookupHeader {
  Op op = Op::data;  // control: an answer without data
  std::uint32_t qp_number = 0;
  bool v6 = false;
  std::array<std::byte, 16> address{};  // the sender's address as the sender knows it
  std::size_t length() const { return v6 ? kLookupHeaderV6 : kLookupHeaderV4; }
  friend bool operator==(const LookupHeader&, const LookupHeader&) = default;
};
std::array<std::byte, kLookupHeaderV6> encode(const LookupHeader& header);
std::optional<LookupHeader> parse_lookup_header(const std::byte* bytes, std::size_t length);

}  // namespace rnicsim::rsockets
