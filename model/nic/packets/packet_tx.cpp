// SPDX-License-Identifier: Apache-2.0
#include "model/nic/packets/packet_tx.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "model/nic/packets/frame_checksums.h"
#include "model/nic/packets/segmentation.h"

namespace rnicsim::nic {
namespace {

constexpr std::uint8_t kPcpMask = 7;
constexpr std::uint32_t kLeastFrame = 60;  // Ethernet's minimum without FCS: shorter frames are padded

bool is_for_stations(const roce::MacAddress& destination) { return (destination[0] & 1) != 0; }

// The bytes of a raw frame on the wire.
Payload wire_bytes(const Packet& packet) {
  const auto& facts = packet.raw;
  const auto written = facts.headers.size() + packet.payload().size();
  Payload bytes(std::max(written, kLeastFrame));
  auto end = std::ranges::copy(facts.headers.bytes(), bytes.writable().begin()).out;
  end = std::ranges::copy(packet.payload().bytes(), end).out;
  std::fill(end, bytes.writable().end(), std::byte{});
  if (!facts.headers.empty()) adapt_headers(bytes.writable().first(written), facts.offset, facts.number, facts.last);
  if (facts.fill_checksums) fill_checksums(bytes.writable());
  return bytes;
}

}  // namespace

void PacketTx::send(PacketOut&& out) {
  ++frames_;
  leaving_[out.credit_class].push_back({.frame = frames_, .left = false, .credited = out.credited});
  filled_ |= 1u << out.credit_class;
  if (out.packet->headers.bth.opcode == roce::Opcode::raw_frame) return send_raw(std::move(out));
  const auto* source = gids_.find(out.gid_index);
  if (source == nullptr) {
    ++counters_.no_source_gid;
    dropped({DropCause::no_source_gid});
    return left(frames_);
  }
  auto& packet = *out.packet;
  auto& to = packet.addresses;
  to.source = source->gid;
  to.source_mac = source->mac;
  to.vlan = source->vlan;
  to.service_level = to.tagged() ? to.service_level & kPcpMask : 0;  // a PCP has 3 bits
  to.source_port = roce::source_port_for(out.source, packet.headers.bth.destination);
  ++counters_.packets;
  counters_.payload_bytes += packet.payload().size();
  if (sent) sent({out.source, packet.headers, packet.payload(), to, frames_});
  packet.seal(frames_, icrc_.headers_only);
  const bool own = gids_.index_of(to.destination, to.destination_mac, to.vlan).has_value();
  const bool copied = groups_.members(to.destination) != nullptr && !groups_.blocks_self(out.source);
  Frame leaving(std::move(out.packet));
  ++counters_.roce_packets;
  counters_.roce_bytes += leaving.size();
  if (is_for_stations(to.destination_mac)) ++counters_.group_packets;
  if (icrc_.always) leaving.write();
  if (own) return looped(std::move(leaving), params_.latency, Looped::alone);
  if (copied) looped(Frame(leaving), params_.latency, Looped::copy);
  frame(std::move(leaving), params_.latency);
}

void PacketTx::send_raw(PacketOut&& out) {
  auto& packet = *out.packet;
  ++counters_.packets;
  counters_.payload_bytes += packet.payload().size();
  packet.addresses = {};
  if (sent) sent({out.source, packet.headers, packet.payload(), packet.addresses, frames_});
  Frame leaving = Frame::of(wire_bytes(packet), {}, {}, frames_);
  if (gids_.has(leaving.destination_mac())) return looped(std::move(leaving), params_.latency, Looped::alone);
  const bool may_be_ours = is_for_stations(leaving.destination_mac()) && !flows_.takes_nothing();
  if (may_be_ours && !groups_.blocks_self(out.source)) looped(Frame(leaving), params_.latency, Looped::copy);
  frame(std::move(leaving), params_.latency);
}

void PacketTx::left(std::uint64_t frame) {
  for (auto rest = filled_; rest != 0; rest &= rest - 1) {
    const auto credit_class = static_cast<std::uint8_t>(std::countr_zero(rest));
    auto& queue = leaving_[credit_class];
    if (queue.front().frame > frame) continue;
    auto* leaving = queue.front().frame == frame ? &queue.front() : find(queue, frame);
    if (leaving == nullptr) continue;
    leaving->left = true;
    std::uint32_t credits = 0;
    for (; !queue.empty() && queue.front().left; queue.pop_front()) credits += queue.front().credited;
    if (queue.empty()) filled_ &= ~(1u << credit_class);
    if (credits != 0) credit(std::uint8_t{credit_class}, std::move(credits));
    return;
  }
}

// The frame numbers of a queue rise. nullptr: the queue does not have the frame.
PacketTx::Leaving* PacketTx::find(Queue& queue, std::uint64_t frame) {
  std::size_t first = 0, last = queue.size();
  while (queue[first].frame < frame && first + 1 < last) {
    const auto middle = first + (last - first) / 2;
    (queue[middle].frame <= frame ? first : last) = middle;
  }
  return queue[first].frame == frame ? &queue[first] : nullptr;
}

}  // namespace rnicsim::nic
