// SPDX-License-Identifier: Apache-2.0
#include "model/fabric/flow_hash.h"

#include <cstddef>
#include <span>

namespace rnicsim::fabric {
namespace {

constexpr std::size_t kTypeOffset = 12, kIpOffset = 14;  // without a VLAN tag
constexpr std::uint64_t kIpv4 = 0x0800, kIpv6 = 0x86dd;
constexpr std::uint64_t kTcp = 6, kUdp = 17;
constexpr std::size_t kIpv4Bytes = 20, kIpv6Bytes = 40, kPortsBytes = 4;
constexpr std::uint64_t kRocePort = 4791;
constexpr std::size_t kUdpBytes = 8, kBthBytes = 12, kQueuePairOffset = 5, kQueuePairBytes = 3;

std::uint64_t number_at(std::span<const std::byte> bytes, std::size_t offset, std::size_t count) {
  std::uint64_t number = 0;
  for (const auto byte : bytes.subspan(offset, count)) number = number << 8 | static_cast<std::uint8_t>(byte);
  return number;
}

// Protocol and ports; no ports for other protocols than UDP and TCP, and none for fragments.
std::uint64_t protocol_at(std::span<const std::byte> header, std::uint64_t protocol, std::size_t ports, bool fragment) {
  const bool has_ports = (protocol == kUdp || protocol == kTcp) && !fragment && header.size() >= ports + kPortsBytes;
  return protocol << 32 | (has_ports ? number_at(header, ports, kPortsBytes) : 0);
}

// Destination queue pair in the BTH; 0: not a RoCEv2 packet. `protocol`: result of protocol_at().
std::uint64_t queue_pair_at(std::span<const std::byte> ip, std::uint64_t protocol, std::size_t ip_bytes) {
  const auto bth = ip_bytes + kUdpBytes;
  const bool is_roce = protocol >> 32 == kUdp && (protocol & 0xffff) == kRocePort;
  return is_roce && ip.size() >= bth + kBthBytes ? number_at(ip, bth + kQueuePairOffset, kQueuePairBytes) : 0;
}

// 64-bit finalizer (Stafford's variant 13).
std::uint64_t mix(std::uint64_t value) {
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
  value = (value ^ value >> 27) * 0x94d049bb133111eb;
  return value ^ value >> 31;
}

}  // namespace

FlowKey flow_of(const Frame& frame) {
  const auto header = frame.header_span();
  const auto tag = frame.tag().bytes();
  if (header.size() < kIpOffset + tag) return {};
  const auto type = number_at(header, kTypeOffset + tag, 2);
  const auto ip = header.subspan(kIpOffset + tag);
  if (type == kIpv4 && ip.size() >= kIpv4Bytes) {
    const bool fragment = (number_at(ip, 6, 2) & 0x3fff) != 0;  // more fragments follow, or this is not the first
    const std::size_t ports = 4 * (number_at(ip, 0, 1) & 0xf);
    return {number_at(ip, 12, 4), number_at(ip, 16, 4), protocol_at(ip, number_at(ip, 9, 1), ports, fragment), type};
  }
  if (type == kIpv6 && ip.size() >= kIpv6Bytes)
    return {number_at(ip, 8, 8), number_at(ip, 16, 8), number_at(ip, 24, 8), number_at(ip, 32, 8),
            protocol_at(ip, number_at(ip, 6, 1), kIpv6Bytes, false)};
  return {number_at(header, 0, 6), number_at(header, 6, 6), type};
}

// The fifth word has 24 free bits for the queue pair: it is 0 for IPv4, and has 40 bits for IPv6.
FlowKey flow_and_queue_pair_of(const Frame& frame) {
  auto flow = flow_of(frame);
  const auto header = frame.header_span();
  const auto tag = frame.tag().bytes();
  if (header.size() <= kIpOffset + tag) return flow;
  const auto type = number_at(header, kTypeOffset + tag, 2);
  const auto ip = header.subspan(kIpOffset + tag);
  const std::size_t ipv4_bytes = 4 * (number_at(ip, 0, 1) & 0xf);
  if (type == kIpv4) flow[4] |= queue_pair_at(ip, flow[2], ipv4_bytes) << 40;
  if (type == kIpv6) flow[4] |= queue_pair_at(ip, flow[4], kIpv6Bytes) << 40;
  return flow;
}

std::uint32_t choose_way(const FlowKey& flow, std::uint64_t seed, std::uint32_t ways) {
  std::uint64_t hash = mix(seed + 0x9e3779b97f4a7c15);
  for (const auto word : flow) hash = mix(hash + 0x9e3779b97f4a7c15 + word);
  return static_cast<std::uint32_t>((hash >> 32) * ways >> 32);
}

}  // namespace rnicsim::fabric
