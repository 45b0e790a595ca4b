#include "model/nic/packet_tx.h"

#include <algorithm>

#include "model/roce/icrc.h"
#include "model/roce/packet.h"

namespace rnicsim::nic {
namespace {

static_assert(roce::kMaxFrameHeader <= Frame::kHeaderCapacity);
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

PacketTx::PacketTx(sc_core::sc_module_name name, const PacketTxParams& params, const GidTable& gids)
    : sc_module(name), params_(params), gids_(gids) {
  SC_HAS_PROCESS(PacketTx);
  SC_METHOD(emit_due);
  sensitive << queue_.event();
  dont_initialize();
}

void PacketTx::send(PacketOut packet) {
  pipeline_.push_back(std::move(packet));
  queue_.push(now() + params_.latency, 0);
}

void PacketTx::reset() {
  pipeline_.clear();
  queue_.clear();
}

void PacketTx::emit_due() {
  char due;
  while (queue_.pop_due(due)) {
    auto packet = std::move(pipeline_.front());
    pipeline_.pop_front();
    emit(packet);
  }
}

void PacketTx::emit(PacketOut& packet) {
  const auto* source = gids_.find(packet.path.sgid_index);
  if (source == nullptr) {
    ++counters_.no_source_gid;
    credit(1u);
    return;
  }
  ++counters_.packets;
  counters_.payload_bytes += packet.payload.size();
  if (sent) sent({packet.headers, packet.payload.size()});
  const auto pad = static_cast<std::uint8_t>(-packet.payload.size() & 3);
  packet.headers.bth.pad = pad;
  Frame out;
  const std::span<std::byte, roce::kMaxFrameHeader> room(out.header.data(), roce::kMaxFrameHeader);
  out.header_bytes =
      static_cast<std::uint16_t>(roce::frame_header(addresses(packet, *source), packet.headers, packet.payload.size(), room));
  out.payload = std::move(packet.payload);
  std::fill_n(out.trailer.begin(), pad, std::byte{0});
  const auto crc = roce::icrc(out.header_span().subspan(roce::kEthernetBytes), out.payload.bytes(),
                              std::span(out.trailer).first(pad));
  for (std::size_t i = 0; i < roce::kIcrcBytes; ++i) out.trailer[pad + i] = std::byte(crc >> (8 * i));
  out.trailer_bytes = static_cast<std::uint8_t>(pad + roce::kIcrcBytes);
  frame(std::move(out));
}

}  // namespace rnicsim::nic
