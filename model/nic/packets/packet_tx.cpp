#include "model/nic/packets/packet_tx.h"

#include <utility>

namespace rnicsim::nic {

void PacketTx::send(PacketOut&& out) {
  ++frames_;
  leaving_.add_back().left = false;
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
  to.source_port = roce::source_port_for(out.source, packet.headers.bth.destination);
  ++counters_.packets;
  counters_.payload_bytes += packet.payload().size();
  if (sent) sent({out.source, packet.headers, packet.payload(), to, frames_});
  packet.seal(frames_, icrc_.headers_only);
  const bool own = gids_.index_of(to.destination, to.destination_mac).has_value();
  const bool copied = groups_.members(to.destination) != nullptr && !groups_.blocks_self(out.source);
  Frame leaving(std::move(out.packet));
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
