#include "model/nic/packet_tx.h"

#include <cstring>

namespace rnicsim::nic {
namespace {

constexpr std::uint8_t kDefaultHopLimit = 64;

void address(roce::FrameAddresses& a, const PacketOut& packet, const GidEntry& source) {
  a.source = source.gid;
  a.source_mac = source.mac;
  std::memcpy(a.destination.data(), packet.path.remote_gid, sizeof packet.path.remote_gid);
  std::memcpy(a.destination_mac.data(), packet.path.remote_mac, sizeof packet.path.remote_mac);
  a.traffic_class = packet.path.traffic_class;
  a.hop_limit = packet.path.hop_limit == 0 ? kDefaultHopLimit : packet.path.hop_limit;
  a.flow_label = packet.path.flow_label;
  a.source_port = roce::source_port_for(packet.source, packet.headers.bth.destination);
}

}  // namespace

void PacketTx::send(PacketOut&& out) {
  ++frames_;
  leaving_.push_back({});
  const auto* source = gids_.find(out.path.sgid_index);
  if (source == nullptr) {
    ++counters_.no_source_gid;
    dropped({DropCause::no_source_gid});
    return left(frames_);
  }
  ++counters_.packets;
  counters_.payload_bytes += out.payload.size();
  if (sent) sent({out.source, out.headers, out.payload, frames_, &out.path});
  PacketRef made = Packet::make();
  Packet* const packet = made.get();
  address(packet->addresses, out, *source);
  packet->headers = out.headers;
  packet->seal(std::move(out.payload), frames_, icrc_.headers_only);
  const auto& to = packet->addresses;
  const bool own = gids_.index_of(to.destination, to.destination_mac).has_value();
  const bool copied = groups_.members(to.destination) != nullptr && !groups_.blocks_self(out.source);
  Frame leaving(std::move(made));
  if (icrc_.always) leaving.write();
  if (own) return looped(std::move(leaving), params_.latency, Looped::alone);
  if (copied) looped(Frame(leaving), params_.latency, Looped::copy);
  frame(std::move(leaving), params_.latency);
}

void PacketTx::left(std::uint64_t frame) {
  leaving_[frame + leaving_.size() - 1 - frames_].left = true;
  std::uint32_t credits = 0;
  for (; !leaving_.empty() && leaving_.front().left; leaving_.pop_front()) ++credits;
  if (credits != 0) credit(credits);
}

}  // namespace rnicsim::nic
