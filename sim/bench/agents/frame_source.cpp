// SPDX-License-Identifier: Apache-2.0
#include "sim/bench/agents/frame_source.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <span>

#include "model/base/draw.h"
#include "sim/bench/agents/frame_queue.h"

namespace rnicsim::sim::bench {
namespace {

constexpr std::size_t kEthernetBytes = 14, kIpv4Bytes = 20;
// 198.18.0.0/15 is reserved for benchmarks of networks (RFC 2544).
constexpr std::uint32_t kFirstSource = 0xc6120000, kSources = 1 << 17;
constexpr std::uint32_t kFirstPort = 1024;

void put_be16(std::span<std::uint8_t> headers, std::size_t at, std::uint32_t value) {
  headers[at] = static_cast<std::uint8_t>(value >> 8);
  headers[at + 1] = static_cast<std::uint8_t>(value);
}

// RFC 1071. The checksum field of `header` is 0.
std::uint32_t ipv4_checksum(std::span<const std::uint8_t> header) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < header.size(); i += 2) sum += std::uint32_t{header[i]} << 8 | header[i + 1];
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return ~sum & 0xffff;
}

}  // namespace

FrameSource::FrameSource(const Station& from, const Station& to, std::uint64_t seed)
    : options_(from.flow().raw), headers_(options_.flows) {
  std::mt19937_64 generator(seed);
  for (Headers& headers : headers_) {
    headers = {};
    std::ranges::copy(to.mac(), headers.begin());
    std::ranges::copy(from.mac(), headers.begin() + 6);
    put_be16(headers, 12, 0x0800);
    headers[14] = 0x45;
    headers[22] = 64;
    headers[23] = 17;
    const auto source = kFirstSource + static_cast<std::uint32_t>(draw_below(generator, kSources));
    put_be16(headers, 26, source >> 16);
    put_be16(headers, 28, source & 0xffff);
    std::ranges::copy(std::span(to.gid().raw).last<4>(), headers.begin() + 30);
    put_be16(headers, 34, kFirstPort + static_cast<std::uint32_t>(draw_below(generator, 0x10000 - kFirstPort)));
    put_be16(headers, 36, FrameQueue::udp_port(to.plan().flow));
  }
}

void FrameSource::fill(ibv_send_wr& wr, ibv_sge& sge, const Region& memory, std::uint64_t at, std::uint32_t bytes) {
  Headers& headers = headers_[next_];
  next_ = next_ + 1 == headers_.size() ? 0 : next_ + 1;
  put_be16(headers, 16, bytes - kEthernetBytes);
  put_be16(headers, 38, bytes - kEthernetBytes - kIpv4Bytes);
  if (!options_.checksums) {
    put_be16(headers, 24, 0);
    put_be16(headers, 24, ipv4_checksum(std::span(headers).subspan<kEthernetBytes, kIpv4Bytes>()));
  } else {
    wr.send_flags |= IBV_SEND_IP_CSUM;
  }
  if (options_.tso_mss) {
    wr.opcode = IBV_WR_TSO;
    wr.tso = {headers.data(), RawOptions::kHeaderBytes, static_cast<std::uint16_t>(*options_.tso_mss)};
    sge = {memory.address + at, bytes - RawOptions::kHeaderBytes, memory.lkey};
    return;
  }
  std::memcpy(reinterpret_cast<std::uint8_t*>(memory.address) + at, headers.data(), headers.size());
  sge = {memory.address + at, bytes, memory.lkey};
}

}  // namespace rnicsim::sim::bench
