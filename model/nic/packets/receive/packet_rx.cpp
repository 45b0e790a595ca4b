// SPDX-License-Identifier: Apache-2.0
#include "model/nic/packets/receive/packet_rx.h"

#include <span>
#include <vector>

#include "model/base/group_mac.h"
#include "model/roce/icrc.h"

namespace rnicsim::nic {
namespace {

bool icrc_right(std::span<const std::byte> headers, std::span<const std::byte> payload,
                std::span<const std::byte> trailer, std::uint8_t pad) {
  const auto crc = roce::icrc(headers.subspan(roce::link_header_bytes(headers)), payload, trailer.first(pad));
  for (std::size_t i = 0; i < roce::kIcrcBytes; ++i)
    if (trailer[pad + i] != std::byte(crc >> (8 * i))) return false;
  return true;
}

// Frames of this model are cut where the payload begins and ends; other frames are first joined into one piece.
bool cut_as(const Frame& frame, const roce::ParsedFrame& parsed) {
  return parsed.payload_offset == frame.header_bytes() && parsed.payload_bytes == frame.payload().size() &&
         frame.trailer_span().size() == parsed.headers.bth.pad + roce::kIcrcBytes;
}

// The GRH before a datagram's payload, written by `write`; empty for other packets.
template <class Write>
Payload grh_of(const roce::Headers& headers, Write&& write) {
  if (!headers.deth) return {};
  Payload grh(roce::kGrhBytes);
  write(std::span<std::byte, roce::kGrhBytes>(grh.writable().data(), roce::kGrhBytes));
  return grh;
}

// The table has one entry, a full member, which a limited member matches, too (IBTA vol 1, 10.9.3).
bool in_partition(std::uint16_t pkey) {
  constexpr std::uint16_t kNumber = 0x7fff;  // the top bit says full member
  return (pkey & kNumber) == (roce::Bth::kDefaultPkey & kNumber);
}

}  // namespace

PacketRx::PacketRx(sc_core::sc_module_name name, const PacketRxParams& params, const GidTable& gids,
                   const MulticastTable& groups, IcrcRule icrc)
    : sc_module(name), params_(params), gids_(gids), groups_(groups), icrc_(icrc) {}

// --- The path of each packet, inline.
inline std::optional<PacketRx::Way> PacketRx::way_of(const roce::Headers& headers,
                                                     const roce::FrameAddresses& addresses) const {
  if (headers.bth.destination.value == roce::kMulticastQpn) return way_of_group(headers, addresses);
  const auto index = gids_.index_of(addresses.destination, addresses.destination_mac, addresses.vlan);
  return index ? std::optional(Way{.gid_index = *index}) : std::nullopt;
}

inline void PacketRx::deliver(PacketIn&& came, std::uint32_t frame_bytes, const std::vector<Qpn>* members) {
  const auto& headers = came.headers();
  if (!in_partition(headers.bth.pkey)) return drop(counters_.bad_pkey, DropCause::bad_pkey);
  ++counters_.packets;
  counters_.payload_bytes += came.payload().size();
  counters_.frame_bytes += frame_bytes;
  if (members != nullptr) ++counters_.group_packets;
  if (received)
    received({headers.bth.destination, headers, came.payload(), came.packet->addresses, came.packet->id(),
              now() - params_.latency});
  if (members == nullptr) return packet(std::move(came));
  if (members->empty()) return;
  // The last member gets the buffer hold.
  for (const Qpn member : std::span(*members).first(members->size() - 1)) {
    came.destination = member;
    packet(PacketIn(came));
  }
  came.destination = members->back();
  packet(std::move(came));
}

void PacketRx::receive(FrameIn&& came) {
  const auto& frame = came.frame;
  const auto* packet = icrc_.always ? nullptr : frame.as<Packet>();
  packet != nullptr ? take(*packet, frame.size(), std::move(came.hold)) : parse(frame, std::move(came.hold));
}

void PacketRx::take(const Packet& packet, std::uint32_t frame_bytes, BufferHold&& hold) {
  const auto way = way_of(packet.headers, packet.addresses);
  if (!way) return drop(counters_.not_ours, DropCause::not_ours);
  const auto write = [&](std::span<std::byte, roce::kGrhBytes> grh) {
    roce::global_route_header(packet.addresses, packet.headers, packet.payload().size(), grh);
  };
  deliver({&packet, packet.headers.bth.destination, way->gid_index, grh_of(packet.headers, write), std::move(hold)},
          frame_bytes, way->members);
}

void PacketRx::parse(const Frame& frame, BufferHold&& hold) {
  auto front = frame.header_span();
  auto parsed = roce::parse_frame(front, frame.size());
  const bool cut = parsed.error == roce::ParseError::none && cut_as(frame, parsed);
  std::vector<std::byte> bytes;
  if (!cut) {
    frame.append_to(bytes);
    front = bytes;
    parsed = roce::parse_frame(front, front.size());
  }
  const auto way = accept(parsed);
  if (!way) return;
  const auto payload = cut ? frame.payload().bytes() : front.subspan(parsed.payload_offset, parsed.payload_bytes);
  const auto trailer = cut ? frame.trailer_span() : front.subspan(parsed.payload_offset + parsed.payload_bytes);
  const auto covered = cut && icrc_.headers_only ? std::span<const std::byte>() : payload;
  if (!icrc_right(front.first(parsed.payload_offset), covered, trailer, parsed.headers.bth.pad))
    return drop(counters_.rx_icrc_encapsulated, DropCause::wrong_icrc);
  const auto write = [&](std::span<std::byte, roce::kGrhBytes> grh) { roce::global_route_header(front, grh); };
  deliver({Packet::parsed(parsed, cut ? Payload(frame.payload()) : Payload::copy_of(payload), frame.id(),
                          frame.telemetry()),
           parsed.headers.bth.destination, way->gid_index, grh_of(parsed.headers, write), std::move(hold)},
          frame.size(), way->members);
}

// The destination of a packet that is valid and for this device; nullopt: dropped.
std::optional<PacketRx::Way> PacketRx::accept(const roce::ParsedFrame& parsed) {
  std::optional<Way> way;
  if (parsed.error != roce::ParseError::none)
    drop(counters_.malformed, DropCause::malformed);
  else if (!(way = way_of(parsed.headers, parsed.addresses)))
    drop(counters_.not_ours, DropCause::not_ours);
  return way;
}

std::optional<PacketRx::Way> PacketRx::way_of_group(const roce::Headers& headers,
                                                    const roce::FrameAddresses& addresses) const {
  const auto* members = headers.deth ? groups_.members(addresses.destination) : nullptr;
  if (members == nullptr || mac_of_group(addresses.destination) != addresses.destination_mac) return std::nullopt;
  return Way{.members = members};
}

void PacketRx::drop(Counter& counter, DropCause cause) {
  ++counter;
  dropped({cause});
}

}  // namespace rnicsim::nic
