// SPDX-License-Identifier: Apache-2.0
#include "sim/wire_workload/first_packets.h"

#include <algorithm>
#include <utility>

namespace rnicsim::sim::wire_workload {
namespace {

using replay::Posted;
using replay::WirePacket;

constexpr std::uint8_t kLargestMtu = 5;

struct Fresh {
  std::vector<const WirePacket*> packets;  // in the order of PSNs
  std::size_t again = 0;
};

// Sorts the packets by PSN. The capture has a packet that was lost before the place of the capture only when the packet
// is sent again, out of order.
Fresh fresh_packets(std::span<const WirePacket* const> sent, std::uint32_t mtu) {
  std::vector<std::pair<std::int64_t, const WirePacket*>> placed;  // PSNs that do not wrap
  for (const auto* packet : sent) {
    const auto place = placed.empty() ? 0 : placed.back().first + distance(placed.back().second->psn(), packet->psn());
    placed.emplace_back(place, packet);
  }
  std::ranges::stable_sort(placed, {}, &std::pair<std::int64_t, const WirePacket*>::first);
  Fresh fresh;
  std::int64_t next = placed.empty() ? 0 : placed.front().first;
  for (const auto& [place, packet] : placed) {
    if (place < next) {
      ++fresh.again;
      continue;
    }
    fresh.packets.push_back(packet);
    next = place + replay::psns_of(*packet, mtu);
  }
  return fresh;
}

void take_whole(std::vector<Posted>& found, Messages& messages) {
  for (auto& message : found) {
    if (message.tail != nullptr)
      messages.whole.push_back(std::move(message));
    else
      ++messages.in_part;
  }
}

// Skips the packets before the first beginning of a message: their message began before the capture.
std::span<const WirePacket* const> from_first_message(std::span<const WirePacket* const> packets, Messages& messages) {
  const auto first = std::ranges::find_if(packets, [](const auto* packet) { return packet->row().begins(); });
  const auto before = static_cast<std::size_t>(first - packets.begin());
  messages.in_part += before != 0;
  return packets.subspan(before);
}

// There are no answers, so each sent message counts as done.
void mark_done(Messages& messages) {
  for (auto& message : messages.whole) message.outcome = roce::Status::success;
}

}  // namespace

Messages reliable_messages(const replay::RequesterEnvironment& qp, std::uint8_t& path_mtu) {
  Messages messages;
  messages.packets_again = fresh_packets(qp.sent, roce::mtu_bytes(path_mtu)).again;
  if (!qp.hole) {
    auto posted = qp.posted;
    take_whole(posted, messages);
    return messages;
  }
  const auto infer = [&](std::uint8_t code) {
    const auto mtu = roce::mtu_bytes(code);
    Messages ignored;
    const auto fresh = fresh_packets(qp.sent, mtu);
    return replay::implied_requests(from_first_message(fresh.packets, ignored), mtu);
  };
  auto found = infer(path_mtu);
  for (auto code = path_mtu; found.hole && code < kLargestMtu;) {
    auto other = infer(++code);
    if (other.hole) continue;
    found = std::move(other);
    path_mtu = code;
  }
  const auto fresh = fresh_packets(qp.sent, roce::mtu_bytes(path_mtu));
  messages.packets_again = fresh.again;
  from_first_message(fresh.packets, messages);
  take_whole(found.requests, messages);
  if (found.hole) messages.holes.push_back(*found.hole);
  return messages;
}

Messages unreliable_messages(std::span<const WirePacket* const> sent, std::uint32_t mtu) {
  Messages messages;
  while (!(sent = from_first_message(sent, messages)).empty()) {
    auto found = replay::implied_requests(sent, mtu);
    take_whole(found.requests, messages);
    if (!found.hole) break;
    messages.holes.push_back(*found.hole);
    const auto at = std::ranges::find(sent, *found.hole, &WirePacket::frame);
    sent = sent.subspan(static_cast<std::size_t>(at - sent.begin()));
    // Counts the rest of a message. take_whole() has counted the message if its first packet is present.
    messages.in_part += !found.unfinished && !sent.empty() && !sent.front()->row().begins();
    while (!sent.empty() && !sent.front()->row().begins()) sent = sent.subspan(1);
  }
  mark_done(messages);
  return messages;
}

Messages datagrams(std::span<const WirePacket* const> sent, std::uint32_t mtu) {
  Messages messages;
  for (const auto& packet : sent) {
    auto found = replay::implied_requests(std::span(&packet, 1), mtu);
    take_whole(found.requests, messages);
  }
  mark_done(messages);
  return messages;
}

}  // namespace rnicsim::sim::wire_workload
