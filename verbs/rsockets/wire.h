// What two rsockets say to one another: the immediate data of a message, the private data of a connection, the
// entries that they write into each other's memory, and the headers of datagrams. The layouts are those of rdma-core.
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

// Immediate data: three bits of operation, 29 of what it means.
enum class Op : std::uint8_t {
  data = 0,          // so many bytes, in the receiver's next buffer
  direct_write = 2,  // never sent: marks an own write into a mapped buffer of the peer
  grant = 4,         // the data messages granted so far, modulo 2^16; a target entry may have changed
  iomap = 6,         // the index of a mapping that changed; takes a place as data messages do
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

// In the CPU's byte order.
constexpr std::uint32_t encode(Message message) {
  return std::uint32_t(message.op) << kMessageValueBits | (message.value & kMaxMessageValue);
}
constexpr Message decode_message(std::uint32_t immediate) {
  return {Op(immediate >> kMessageValueBits), immediate & kMaxMessageValue};
}
constexpr Message control_message(Control control) { return {Op::control, std::uint32_t(control)}; }

// Memory of the one side that the other may write to.
struct Extent {
  std::uint64_t address = 0;
  std::uint32_t key = 0;
  std::uint32_t length = 0;
  friend bool operator==(const Extent&, const Extent&) = default;
};

// An extent that the peer maps at `offset`.
struct Mapping {
  std::uint64_t offset = 0;
  Extent extent;
  friend bool operator==(const Mapping&, const Mapping&) = default;
};

// As they lie in memory, in the byte order of the side that reads them.
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

// The private data of REQ and REP. Numbers are big-endian.
inline constexpr std::size_t kConnectionDataBytes = 40;
inline constexpr std::uint8_t kConnectionVersion = 1;

struct ConnectionData {
  std::uint8_t version = kConnectionVersion;
  bool big_endian = std::endian::native == std::endian::big;
  bool maps = true;                 // the entries of iomaps follow those of targets
  std::uint16_t credits = 0;        // data messages that the sender of this may be sent at once
  std::uint16_t iomap_entries = 0;  // see round_iomap_entries
  Extent targets;                   // length: entries, not bytes
  Extent buffer;                    // the first target of the other side
  friend bool operator==(const ConnectionData&, const ConnectionData&) = default;
};

std::array<std::byte, kConnectionDataBytes> encode(const ConnectionData& data);
// Nothing: too short.
std::optional<ConnectionData> decode_connection_data(const void* bytes, std::size_t length);

// A count of iomaps goes in eight bits: up to 128 exactly, above in steps of 256. The largest that does not exceed
// `wanted`.
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

// In front of a datagram from one UD queue pair to another: who sent it.
inline constexpr std::size_t kDatagramHeaderV4 = 8;
inline constexpr std::size_t kDatagramHeaderV6 = 24;

struct DatagramHeader {
  std::array<std::byte, kDatagramHeaderV6> bytes;
  std::size_t length = 0;
};
DatagramHeader datagram_header(const SocketAddress& source);
// Nothing: no such header. Otherwise its length, and the source.
std::optional<std::size_t> parse_datagram_header(const std::byte* bytes, std::size_t length, SocketAddress& source);

// In front of a datagram that goes by UDP, before the queue pair of the peer is known: that of the sender.
inline constexpr std::uint32_t kLookupTag = 0x55555555;
inline constexpr std::size_t kLookupHeaderV4 = 16;
inline constexpr std::size_t kLookupHeaderV6 = 28;

struct LookupHeader {
  Op op = Op::data;  // control: an answer, without a datagram
  std::uint32_t qp_number = 0;
  bool v6 = false;
  std::array<std::byte, 16> address{};  // as the sender of this has it
  std::size_t length() const { return v6 ? kLookupHeaderV6 : kLookupHeaderV4; }
  friend bool operator==(const LookupHeader&, const LookupHeader&) = default;
};
std::array<std::byte, kLookupHeaderV6> encode(const LookupHeader& header);
std::optional<LookupHeader> parse_lookup_header(const std::byte* bytes, std::size_t length);

}  // namespace rnicsim::rsockets
