#include "model/nic/packet_tx.h"

#include <algorithm>

#include "model/roce/icrc.h"
#include "model/roce/packet.h"

namespace rnicsim::nic {
namespace {

constexpr std::uint8_t kDefaultHopLimit = 64;

roce::FrameAddresses addresses(const PacketOut& packet, const GidEntry& source) {
  roce::FrameAddresses a;
  a.source = source.gid;
  a.source_mac = source.mac;
  std::ranges::copy(packet.path.remote_gid, a.destination.begin());
  std::ranges::copy(packet.path.remote_mac, a.destination_mac.begin());
  a.traffic_class = packet.path.traffic_class;
  a.hop_limit = packet.path.hop_limit == 0 ? kDefaultHopLimit : packet.path.hop_limit;
  a.flow_label = packet.path.flow_label;
  a.source_port = roce::source_port_for(packet.source, packet.headers.bth.destination);
  return a;
}

}  // namespace

void PacketTx::send(PacketOut&& packet) {
  ++frames_;
  leaving_.push_back({});
  const auto* source = gids_.find(packet.path.sgid_index);
  if (source == nullptr) {
    ++counters_.no_source_gid;
    dropped({DropCause::no_source_gid});
    return left(frames_);
  }
  ++counters_.packets;
  counters_.payload_bytes += packet.payload.size();
  if (sent) sent({packet.source, packet.headers, packet.payload, frames_, &packet.path});
  const auto to = addresses(packet, *source);
  const bool own = gids_.index_of(to.destination, to.destination_mac).has_value();
  const bool copied = groups_.members(to.destination) != nullptr && !groups_.blocks_self(packet.source);
  Frame out = frame_of(std::move(packet), to);
  if (own) return looped(std::move(out), params_.latency, Looped::alone);
  if (copied) looped(Frame(out), params_.latency, Looped::copy);
  frame(std::move(out), params_.latency);
}

void PacketTx::left(std::uint64_t frame) {
  leaving_[frame + leaving_.size() - 1 - frames_].left = true;
  std::uint32_t credits = 0;
  for (; !leaving_.empty() && leaving_.front().left; leaving_.pop_front()) ++credits;
  if (credits != 0) credit(std::uint32_t{credits});
}

Frame PacketTx::frame_of(PacketOut&& packet, const roce::FrameAddresses& addresses) const {
  const auto pad = static_cast<std::uint8_t>(-packet.payload.size() & 3);
  packet.headers.bth.pad = pad;
  Frame out;
  out.id = frames_;
  out.header = Payload(roce::kMaxFrameHeader);
  const std::span<std::byte, roce::kMaxFrameHeader> room(out.header.writable().data(), roce::kMaxFrameHeader);
  const auto used = roce::frame_header(addresses, packet.headers, packet.payload.size(), room);
  out.header.shorten(static_cast<std::uint32_t>(used));
  out.payload = std::move(packet.payload);
  std::fill_n(out.trailer.begin(), pad, std::byte{0});
  const auto covered = timing_only_ ? std::span<const std::byte>() : out.payload.bytes();
  const auto crc = roce::icrc(out.header_span().subspan(roce::kEthernetBytes), covered,
                              std::span(out.trailer).first(pad));
  for (std::size_t i = 0; i < roce::kIcrcBytes; ++i) out.trailer[pad + i] = std::byte(crc >> (8 * i));
  out.trailer_bytes = static_cast<std::uint8_t>(pad + roce::kIcrcBytes);
  return out;
}

}  // namespace rnicsim::nic
