// SPDX-License-Identifier: Apache-2.0
#include "tests/support/wire_frames.h"

#include <algorithm>
#include <array>

#include "model/roce/icrc.h"

namespace rnicsim::sim::replay::test {

std::vector<std::byte> frame_of(const roce::FrameAddresses& addresses, roce::Headers headers,
                                std::span<const std::byte> payload) {
  headers.bth.pad = static_cast<std::uint8_t>(-payload.size() & 3);
  std::array<std::byte, roce::kMaxFrameHeader> header;
  const auto size = roce::frame_header(addresses, headers, static_cast<std::uint32_t>(payload.size()), header);
  CapturedFrame frame{.number = 0, .length = 0, .bytes = {header.begin(), header.begin() + size}};
  frame.bytes.insert(frame.bytes.end(), payload.begin(), payload.end());
  frame.bytes.resize(frame.bytes.size() + headers.bth.pad + roce::kIcrcBytes);
  seal(frame);
  return frame.bytes;
}

void seal(CapturedFrame& frame) {
  const std::span<std::byte> bytes(frame.bytes);
  const auto parsed = roce::parse_frame(bytes, bytes.size());
  const auto end = parsed.payload_offset + parsed.payload_bytes;
  const auto headers = bytes.first(parsed.payload_offset).subspan(roce::link_header_bytes(bytes));
  const auto crc = roce::icrc(headers, bytes.subspan(parsed.payload_offset, parsed.payload_bytes),
                              bytes.subspan(end, parsed.headers.bth.pad));
  for (std::size_t i = 0; i < roce::kIcrcBytes; ++i)
    bytes[end + parsed.headers.bth.pad + i] = std::byte(crc >> (8 * i));
}

std::uint32_t Wire::request(roce::Headers headers, std::uint32_t payload) {
  headers.bth.destination = {kQpn};
  return add(kPeer, kNic, headers, pattern(payload));
}

std::uint32_t Wire::answer(roce::Headers headers, std::span<const std::byte> payload) {
  headers.bth.destination = {kPeerQpn};
  return add(kNic, kPeer, headers, payload);
}

std::uint32_t Wire::answer(roce::Opcode opcode, std::uint32_t psn, std::uint8_t syndrome, std::uint32_t msn) {
  auto answer_headers = headers(opcode, psn, false);
  answer_headers.aeth = roce::Aeth{syndrome, msn};
  return answer(answer_headers);
}

std::uint32_t Wire::own_request(roce::Headers headers, std::uint32_t payload) {
  headers.bth.destination = {kPeerQpn};
  return add(kNic, kPeer, headers, pattern(payload));
}

std::uint32_t Wire::answer_to_own(roce::Headers headers, std::span<const std::byte> payload) {
  headers.bth.destination = {kQpn};
  return add(kPeer, kNic, headers, payload);
}

std::uint32_t Wire::answer_to_own(roce::Opcode opcode, std::uint32_t psn, std::uint8_t syndrome, std::uint32_t msn) {
  auto answer_headers = headers(opcode, psn, false);
  answer_headers.aeth = roce::Aeth{syndrome, msn};
  return answer_to_own(answer_headers);
}

std::uint32_t Wire::datagram(std::uint32_t psn, std::uint32_t qpn, std::uint32_t qkey, std::uint32_t payload) {
  auto with_deth = headers(roce::Opcode::ud_send_only, psn, false);
  with_deth.bth.destination = {qpn};
  with_deth.deth = roce::Deth{qkey, {kPeerQpn}};
  return add(kPeer, kNic, with_deth, pattern(payload));
}

std::uint32_t Wire::management(bool own, std::span<const std::byte> mad) {
  auto with_deth = headers(roce::Opcode::ud_send_only, 0, false);
  with_deth.bth.destination = {1};
  with_deth.deth = roce::Deth{0x80010000, {1}};
  return own ? add(kNic, kPeer, with_deth, mad) : add(kPeer, kNic, with_deth, mad);
}

roce::Gid Wire::address(std::uint8_t host) { return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, host}; }

roce::Headers Wire::headers(roce::Opcode opcode, std::uint32_t psn, bool ack_request) {
  roce::Headers headers;
  headers.bth.opcode = opcode;
  headers.bth.psn = roce::Psn(psn);
  headers.bth.ack_request = ack_request;
  return headers;
}

std::vector<std::byte> Wire::pattern(std::uint32_t bytes) {
  std::vector<std::byte> pattern(bytes);
  for (std::uint32_t i = 0; i < bytes; ++i) pattern[i] = std::byte(i * 7 + 3);
  return pattern;
}

std::uint32_t Wire::add(std::uint8_t from, std::uint8_t to, const roce::Headers& headers,
                        std::span<const std::byte> payload) {
  roce::FrameAddresses addresses;
  addresses.source = address(from);
  addresses.destination = address(to);
  auto bytes = frame_of(addresses, headers, payload);
  const auto number = static_cast<std::uint32_t>(frames.size() + 1);
  const auto length = static_cast<std::uint32_t>(bytes.size());
  const auto time = frames.empty() ? Duration{} : frames.back().time + step;
  frames.push_back({.number = number, .length = length, .bytes = std::move(bytes), .time = time});
  return number;
}

}  // namespace rnicsim::sim::replay::test
