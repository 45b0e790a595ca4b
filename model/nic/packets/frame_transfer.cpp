// SPDX-License-Identifier: Apache-2.0
#include "model/nic/packets/frame_transfer.h"

#include <cstdint>
#include <optional>

#include "model/nic/packets/packet.h"

namespace rnicsim::nic {
namespace {

enum class Form : std::uint8_t { bytes, packet, packet_without_payload };

}  // namespace

void put_frame(ByteWriter& out, const Frame& frame) {
  const auto* packet = frame.as<Packet>();
  const auto form = packet == nullptr                ? Form::bytes
                    : packet->icrc_of_headers_only() ? Form::packet_without_payload
                                                     : Form::packet;
  out.put(form);
  out.put(frame.id());
  out.put(frame.telemetry() != nullptr);
  if (frame.telemetry() != nullptr) out.put(*frame.telemetry());
  if (form == Form::bytes) {
    out.put_bytes(frame.header_span());
    out.put_bytes(frame.trailer_span());
  } else {
    out.put(packet->headers);
    out.put(packet->addresses);
  }
  if (form == Form::packet_without_payload)
    out.put(frame.payload().size());
  else
    out.put_bytes(frame.payload().bytes());
}

Frame take_frame(ByteReader& in) {
  const auto form = in.take<Form>();
  const auto id = in.take<std::uint64_t>();
  std::optional<Telemetry> telemetry;
  if (in.take<bool>()) telemetry = in.take<Telemetry>();
  if (form == Form::bytes) {
    const auto header = in.take_bytes();
    const auto trailer = in.take_bytes();
    return Frame::of(Payload::copy_of(header), Payload::copy_of(in.take_bytes()), trailer, id,
                     telemetry ? &*telemetry : nullptr);
  }
  const auto packet = Packet::make();
  packet->headers = in.take<roce::Headers>();
  packet->addresses = in.take<roce::FrameAddresses>();
  const bool has_none = form == Form::packet_without_payload;
  packet->put(has_none ? Payload(in.take<std::uint32_t>()) : Payload::copy_of(in.take_bytes()));
  if (telemetry) packet->carry(*telemetry);
  packet->seal(id, has_none);
  return Frame(packet);
}

}  // namespace rnicsim::nic
