// SPDX-License-Identifier: Apache-2.0
#include "model/nic/packets/notification_point.h"

#include <algorithm>

namespace rnicsim::nic {
namespace {

constexpr std::size_t kCnpPayload = 16;  // reserved bytes, zeros
constexpr std::uint8_t kEcnBits = 2;

PacketOut notification(const CongestionSeen& seen, std::uint32_t dscp, std::uint32_t pcp) {
  auto packet = Packet::make();
  auto& bth = packet->headers.bth;
  bth.opcode = roce::Opcode::cnp;
  bth.migrated = false;
  bth.becn = true;
  bth.destination = seen.peer;
  packet->addresses = seen.to;
  packet->addresses.traffic_class = static_cast<std::uint8_t>(dscp << kEcnBits);
  packet->addresses.service_level = static_cast<std::uint8_t>(pcp);
  static constexpr std::array<std::byte, kCnpPayload> kReserved{};
  packet->put(Payload::copy_of(kReserved));
  return {.source = seen.qpn, .gid_index = seen.gid_index, .packet = std::move(packet), .credited = false};
}

// The CNP has a tag if the packet's tag had a VLAN. Both are in the same VLAN.
std::uint8_t class_of(const PriorityMap& priorities, const Packet& cnp, const CongestionSeen& seen) {
  const auto& to = cnp.addresses;
  const VlanTag tag(static_cast<std::uint16_t>(to.service_level << VlanTag::kPcpShift));
  const bool tagged = seen.tag && (seen.tag.bits() & VlanTag::kVlanMask) != 0;
  return priorities.of(to.traffic_class, tagged ? tag : VlanTag());
}

}  // namespace

NotificationPoint::NotificationPoint(const NotificationParams& params, const PriorityMap& priorities)
    : params_(params),
      priorities_(priorities),
      moderation_(static_cast<Moderation>(std::ranges::find(NotificationParams::kModerationWords, params.moderation) -
                                          std::begin(NotificationParams::kModerationWords))) {}

void NotificationPoint::see(const CongestionSeen& seen) {
  const bool marked = seen.cause == CongestionSeen::Cause::marked;
  if (marked) ++counters_.np_ecn_marked_roce_packets;
  if (!marked && !params_.cnp_on_loss) return;
  if ((params_.enable >> priorities_.of(seen.traffic_class, seen.tag) & 1) == 0 || !may_answer(seen)) return;
  ++counters_.np_cnp_sent;
  auto out = notification(seen, params_.cnp_dscp, params_.cnp_802p_prio);
  out.credit_class = class_of(priorities_, *out.packet, seen);
  if (params_.delay == Duration{}) return cnp(std::move(out));
  waiting_.push(now() + params_.delay, std::move(out));
}

NotificationPoint::Key NotificationPoint::key_of(const CongestionSeen& seen) const {
  switch (moderation_) {
    case Moderation::ip: return {0, seen.to.destination};
    case Moderation::port: return {};
    case Moderation::qp: return {seen.qpn.value, {}};
  }
  return {};
}

void NotificationPoint::forget_oldest() {
  answered_.erase(order_.front().first);
  order_.pop_front();
}

// Keys are remembered for the same time, so the oldest key expires first. If all places are taken, the oldest key gives
// its place to a new one, and may get its next CNP too early.
bool NotificationPoint::may_answer(const CongestionSeen& seen) {
  if (params_.min_time_between_cnps == Duration{}) return true;
  while (!order_.empty() && order_.front().second <= now()) forget_oldest();
  const auto key = key_of(seen);
  if (!answered_.insert(key).second) return false;
  if (order_.size() == kMostKeys) forget_oldest();
  order_.push_back({key, now() + params_.min_time_between_cnps});
  return true;
}

void NotificationPoint::send_due() {
  PacketOut out;
  while (waiting_.pop_due(out)) cnp(std::move(out));
}

void NotificationPoint::reset() {
  answered_.clear();
  order_ = {};
  waiting_.clear();
}

}  // namespace rnicsim::nic
