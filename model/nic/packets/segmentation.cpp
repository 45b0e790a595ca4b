// SPDX-License-Identifier: Apache-2.0
#include "model/nic/packets/segmentation.h"

#include <optional>

#include "model/nic/packets/network_headers.h"

namespace rnicsim::nic {
namespace {

using namespace network;

struct Transport {
  unsigned protocol;
  std::size_t at;
};

Transport adapt_ipv4(std::span<std::byte> frame, std::size_t at, std::uint32_t number) {
  constexpr std::size_t kLength = 2, kIdentification = 4, kProtocol = 9;
  put_word(frame, at + kLength, frame.size() - at);
  put_word(frame, at + kIdentification, word_at(frame, at + kIdentification) + number);
  return {byte_at(frame, at + kProtocol), at + (byte_at(frame, at) & 0xf) * 4};
}

Transport adapt_ipv6(std::span<std::byte> frame, std::size_t at) {
  constexpr std::size_t kLength = 4, kNext = 6;
  put_word(frame, at + kLength, frame.size() - at - kIpv6);
  Transport found{byte_at(frame, at + kNext), at + kIpv6};
  while (is_extension(found.protocol) && frame.size() >= found.at + kExtensionUnit) {
    const auto units = found.protocol == protocol::kFragment ? 1 : byte_at(frame, found.at + 1) + 1;
    found = {byte_at(frame, found.at), found.at + units * kExtensionUnit};
  }
  return found;
}

std::optional<Transport> adapt_network(std::span<std::byte> frame, std::uint32_t number) {
  const auto carried = carried_in(frame);
  if (!carried) return std::nullopt;
  const auto [ether_type, at] = *carried;
  if (ether_type == type::kIpv4 && frame.size() >= at + kLeastIpv4) return adapt_ipv4(frame, at, number);
  if (ether_type == type::kIpv6 && frame.size() >= at + kIpv6) return adapt_ipv6(frame, at);
  return std::nullopt;
}

void adapt_tcp(std::span<std::byte> frame, std::size_t at, std::uint32_t offset, bool first, bool last) {
  constexpr std::size_t kSequence = 4, kFlags = 13;
  constexpr std::byte kFin{0x01}, kPsh{0x08}, kCwr{0x80};
  const auto sequence = (word_at(frame, at + kSequence) << 16 | word_at(frame, at + kSequence + 2)) + offset;
  put_word(frame, at + kSequence, sequence >> 16);
  put_word(frame, at + kSequence + 2, sequence);
  if (!last) frame[at + kFlags] &= ~(kFin | kPsh);
  if (!first) frame[at + kFlags] &= ~kCwr;
}

}  // namespace

void adapt_headers(std::span<std::byte> frame, std::uint32_t offset, std::uint32_t number, bool last) {
  const auto transport = adapt_network(frame, number);
  if (!transport) return;
  const auto [number_of, at] = *transport;
  constexpr std::size_t kUdpLength = 4;
  if (number_of == protocol::kTcp && frame.size() >= at + kLeastTcp) adapt_tcp(frame, at, offset, number == 0, last);
  if (number_of == protocol::kUdp && frame.size() >= at + kUdp) put_word(frame, at + kUdpLength, frame.size() - at);
}

}  // namespace rnicsim::nic
