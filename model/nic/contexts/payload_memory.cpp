// SPDX-License-Identifier: Apache-2.0
#include "model/nic/contexts/payload_memory.h"

#include <utility>

namespace rnicsim::nic {

void PayloadMemory::write_in_turn(Order& order, Write&& write) {
  using Side = Order::Side;
  if (order.side == Side::turning) return void(order.held.push_back(std::move(write)));
  const bool to_device = on_device(write.place);
  const auto to = to_device ? Side::device : Side::host;
  const auto until = to_device ? order.host_until : order.device_until;
  if (order.side == to || until <= now()) {
    order.side = to;
    return put(order, std::move(write));
  }
  device_.count_turn();
  order.side = Side::turning;
  order.turn = ++turns_;
  order.held.push_back(std::move(write));
  turning_.emplace(order.turn, &order);
  const DmaReply turned{this, 0, order.turn};
  to_device ? dma_.after_writes(turned) : device_.after_writes(turned);
}

void PayloadMemory::put(Order& order, Write&& write) {
  auto& [place, data, reply, placement] = write;
  if (on_device(place)) {
    order.device_until = device_.write(place.address, std::move(data), reply, placement.discard);
  } else {
    dma_.write(place, std::move(data), reply, placement);
    order.host_until = dma_.landing();
  }
}

// The writes before the held ones have landed. A held write may switch memory and wait again.
void PayloadMemory::dma_done(std::uint32_t, std::uint64_t turn, AccessResult, Payload&&) {
  const auto found = turning_.find(turn);
  if (found == turning_.end()) return;
  auto& order = *found->second;
  turning_.erase(found);
  auto held = std::exchange(order.held, {});
  const bool to_device = on_device(held.front().place);
  order.side = to_device ? Order::Side::device : Order::Side::host;
  (to_device ? order.host_until : order.device_until) = {};
  for (; !held.empty(); held.pop_front()) write_in_turn(order, std::move(held.front()));
}

void PayloadMemory::forget(Order& order) {
  if (order.side != Order::Side::turning) return;
  turning_.erase(order.turn);
  auto held = std::exchange(order.held, {});
  order.side = on_device(held.front().place) ? Order::Side::host : Order::Side::device;
  for (; !held.empty(); held.pop_front()) {
    const auto [client, kind, tag] = held.front().reply;
    if (client != nullptr) client->dma_done(kind, tag, AccessResult::denied, {});
  }
}

}  // namespace rnicsim::nic
