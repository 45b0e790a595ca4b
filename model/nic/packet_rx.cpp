#include "model/nic/packet_rx.h"

#include <tuple>
#include <vector>

#include "model/base/group_mac.h"
#include "model/roce/icrc.h"

namespace rnicsim::nic {
namespace {

bool icrc_right(std::span<const std::byte> headers, std::span<const std::byte> payload,
                std::span<const std::byte> trailer, std::uint8_t pad) {
  const auto crc = roce::icrc(headers.subspan(roce::kEthernetBytes), payload, trailer.first(pad));
  for (std::size_t i = 0; i < roce::kIcrcBytes; ++i)
    if (trailer[pad + i] != std::byte(crc >> (8 * i))) return false;
  return true;
}

// Our own frames are cut where the payload begins and ends; others are made one piece first.
bool cut_as(const Frame& frame, const roce::ParsedFrame& parsed) {
  return parsed.payload_offset == frame.header.size() && parsed.payload_bytes == frame.payload.size() &&
         frame.trailer_bytes == parsed.headers.bth.pad + roce::kIcrcBytes;
}

Payload grh_of(const roce::ParsedFrame& parsed, std::span<const std::byte> front) {
  if (roce::info(parsed.headers.bth.opcode).transport != roce::Transport::ud) return {};
  Payload grh(roce::kGrhBytes);
  roce::global_route_header(front, std::span<std::byte, roce::kGrhBytes>(grh.writable().data(), roce::kGrhBytes));
  return grh;
}

// The table has one entry, and that is a full member: a limited one matches it too (IBTA vol 1, 10.9.3).
bool in_partition(std::uint16_t pkey) {
  constexpr std::uint16_t kNumber = 0x7fff;  // the top bit says full member
  return (pkey & kNumber) == (roce::Bth::kDefaultPkey & kNumber);
}

}  // namespace

PacketRx::PacketRx(sc_core::sc_module_name name, const PacketRxParams& params, const GidTable& gids,
                   const MulticastTable& groups, bool timing_only)
    : sc_module(name), params_(params), gids_(gids), groups_(groups), timing_only_(timing_only) {}

void PacketRx::receive(Frame&& frame, Duration delay) {
  pipeline_.push(now() + delay + params_.latency, std::move(frame));
}

void PacketRx::receive_own(Frame&& frame, Duration delay) {
  own_.push(now() + delay + params_.latency, std::move(frame));
}

void PacketRx::reset() {
  pipeline_.clear();
  own_.clear();
}

void PacketRx::deliver_due(DelayLine<Frame>& pipeline) {
  Frame frame;
  while (pipeline.pop_due(frame)) {
    PacketIn in;
    roce::Gid to;
    if (!parse(frame, in, to)) continue;
    if (!in_partition(in.headers.bth.pkey)) {
      drop(counters_.bad_pkey, DropCause::bad_pkey);
      continue;
    }
    ++counters_.packets;
    counters_.payload_bytes += in.payload.size();
    in.frame = frame.id;
    if (received)
      received({in.headers.bth.destination, in.headers, in.payload, frame.id, nullptr, now() - params_.latency});
    deliver(std::move(in), to);
  }
}

void PacketRx::deliver(PacketIn&& in, const roce::Gid& to) {
  if (in.headers.bth.destination.value != abi::kMulticastQpn) return packet(std::move(in));
  for (const Qpn member : *groups_.members(to)) {
    PacketIn copy = in;
    copy.headers.bth.destination = member;
    packet(std::move(copy));
  }
}

bool PacketRx::parse(const Frame& frame, PacketIn& out, roce::Gid& to) {
  auto parsed = roce::parse_frame(frame.header_span(), frame.size());
  if (parsed.error == roce::ParseError::none && cut_as(frame, parsed)) {
    if (!accept(parsed, out)) return false;
    to = parsed.addresses.destination;
    out.payload = frame.payload;
    out.grh = grh_of(parsed, frame.header_span());
    const auto covered = timing_only_ ? std::span<const std::byte>() : frame.payload.bytes();
    if (icrc_right(frame.header_span(), covered, frame.trailer_span(), parsed.headers.bth.pad)) return true;
    return drop(counters_.rx_icrc_encapsulated, DropCause::wrong_icrc);
  }
  std::vector<std::byte> bytes;
  frame.append_to(bytes);
  parsed = roce::parse_frame(bytes, bytes.size());
  if (!accept(parsed, out)) return false;
  const std::span whole(bytes);
  const auto payload = whole.subspan(parsed.payload_offset, parsed.payload_bytes);
  const auto trailer = whole.subspan(parsed.payload_offset + parsed.payload_bytes);
  if (!icrc_right(whole.first(parsed.payload_offset), payload, trailer, parsed.headers.bth.pad))
    return drop(counters_.rx_icrc_encapsulated, DropCause::wrong_icrc);
  to = parsed.addresses.destination;
  out.payload = Payload::copy_of(payload);
  out.grh = grh_of(parsed, whole);
  return true;
}

// For us, and then with its headers and its way.
bool PacketRx::accept(const roce::ParsedFrame& parsed, PacketIn& out) {
  using roce::ParseError;
  if (parsed.error == ParseError::not_ip || parsed.error == ParseError::not_roce)
    return drop(counters_.not_roce, DropCause::not_roce);
  if (parsed.error != ParseError::none) return drop(counters_.malformed, DropCause::malformed);
  if (!is_ours(parsed, out)) return drop(counters_.not_ours, DropCause::not_ours);
  out.headers = parsed.headers;
  out.source = parsed.addresses.source;
  return true;
}

bool PacketRx::is_ours(const roce::ParsedFrame& parsed, PacketIn& out) const {
  const auto& [destination, mac] = std::tie(parsed.addresses.destination, parsed.addresses.destination_mac);
  if (parsed.headers.bth.destination.value != abi::kMulticastQpn) {
    const auto index = gids_.index_of(destination, mac);
    out.gid_index = index.value_or(0);
    return index.has_value();
  }
  return roce::info(parsed.headers.bth.opcode).transport == roce::Transport::ud &&
         groups_.members(destination) != nullptr && mac_of_group(destination) == mac;
}

bool PacketRx::drop(Counter& counter, DropCause cause) {
  ++counter;
  dropped({cause});
  return false;
}

}  // namespace rnicsim::nic
