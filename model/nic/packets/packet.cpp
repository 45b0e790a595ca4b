// SPDX-License-Identifier: Apache-2.0
#include "model/nic/packets/packet.h"

#include <algorithm>
#include <cassert>

#include "model/roce/icrc.h"

namespace rnicsim::nic {

// Results do not depend on the packet that the pool returns. All packets belong to the simulation's one thread.
struct Packet::Pool {
  Packet* idle = nullptr;
  static constinit thread_local Pool instance;
};
constinit thread_local Packet::Pool Packet::Pool::instance{};

PacketRef Packet::make() {
  auto& idle = Pool::instance.idle;
  if (idle == nullptr) return new Packet;
  auto* packet = idle;
  idle = packet->next_;
  // Field by field: a complete reset would write twice as many bytes.
  auto& [bth, deth, xrc_srqn, reth, atomic, aeth, atomic_ack, immediate, invalidate] = packet->headers;
  bth = {};
  deth.reset();
  xrc_srqn.reset();
  reth.reset();
  atomic.reset();
  aeth.reset();
  atomic_ack.reset();
  immediate.reset();
  invalidate.reset();
  return packet;
}

PacketHandle Packet::parsed(const roce::ParsedFrame& frame, Payload&& payload, std::uint64_t id,
                            const Telemetry* telemetry) {
  const auto packet = make();
  packet->headers = frame.headers;
  packet->addresses = frame.addresses;
  packet->payload_ = std::move(payload);
  packet->id_ = id;
  if (telemetry != nullptr) packet->carry(*telemetry);
  return packet;
}

PacketHandle Packet::received(Payload frame, const RawFacts& facts, std::uint64_t id) {
  const auto packet = make();
  packet->headers.bth.opcode = roce::Opcode::raw_frame;
  packet->addresses = {};
  packet->raw = facts;
  packet->payload_ = std::move(frame);
  packet->id_ = id;
  return packet;
}

void Packet::put_piece(std::uint32_t offset, const Payload& piece) {
  const auto bytes = piece.bytes();
  std::ranges::copy(bytes, payload_.writable().subspan(offset).begin());
}

void Packet::release() {
  payload_ = {};
  if (!raw.headers.empty()) raw.headers = {};
  header_ = nullptr;
  telemetry_ = nullptr;
  auto& idle = Pool::instance.idle;
  next_ = idle;
  idle = this;
}

void Packet::seal(std::uint64_t id, bool icrc_of_headers_only) {
  // The receiver by reference must find the same as a parser of the bytes.
  roce::cut_to_fields(headers);
  headers.bth.pad = static_cast<std::uint8_t>(-payload_.size() & 3);
  id_ = id;
  header_bytes_ = static_cast<std::uint32_t>(roce::frame_header_bytes(addresses, headers.bth.opcode));
  trailer_bytes_ = static_cast<std::uint8_t>(headers.bth.pad + roce::kIcrcBytes);
  bytes_ = header_bytes_ + payload_.size() + trailer_bytes_;
  if (telemetry_ != nullptr) bytes_ += static_cast<std::uint32_t>(telemetry_->size());
  destination_mac_ = addresses.destination_mac;
  traffic_class_ = addresses.traffic_class;
  tag_ = addresses.tagged() ? VlanTag(addresses.tag()) : VlanTag();
  icrc_of_headers_only_ = icrc_of_headers_only;
}

boost::intrusive_ptr<FrameBody> Packet::alone() {
  if (!is_shared()) return this;
  const auto packet = make();
  packet->headers = headers;
  packet->addresses = addresses;
  packet->payload_ = payload_;
  if (telemetry_ != nullptr) packet->carry(*telemetry_);
  packet->seal(id_, icrc_of_headers_only_);
  return packet;
}

boost::intrusive_ptr<FrameBody> Packet::marked() {
  auto body = alone();
  auto& packet = static_cast<Packet&>(*body);
  packet.addresses.traffic_class |= kCe;
  packet.traffic_class_ = packet.addresses.traffic_class;
  packet.header_ = nullptr;
  return body;
}

void Packet::write() {
  const auto pad = headers.bth.pad;
  [[maybe_unused]] const auto used = roce::frame_header(addresses, headers, payload_.size(), wire_header_);
  assert(used == header_bytes_);
  std::fill_n(trailer_.begin(), pad, std::byte{0});
  const auto covered = icrc_of_headers_only_ ? std::span<const std::byte>() : payload_.bytes();
  const auto link = roce::kEthernetBytes + tag_.bytes();
  const auto from_ip = std::span<const std::byte>(wire_header_).first(header_bytes_).subspan(link);
  const auto crc = roce::icrc(from_ip, covered, std::span(trailer_).first(pad));
  for (std::size_t i = 0; i < roce::kIcrcBytes; ++i) trailer_[pad + i] = std::byte(crc >> (8 * i));
  header_ = wire_header_.data();
}

}  // namespace rnicsim::nic
