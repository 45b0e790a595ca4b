// SPDX-License-Identifier: Apache-2.0
// Receive-side scaling: a hash over a frame's fields chooses one of several receive queues (Microsoft's Toeplitz hash;
// ibv_create_qp_ex(3), IBV_RX_HASH_*).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "model/nic/packets/frame_headers.h"
#include "model/nic/personality/flows.h"

namespace rnicsim::nic {

std::uint32_t toeplitz(const RssKey& key, std::span<const std::byte> input);

// Hash over the selected fields that the frame has: source address, destination address, source port, destination port
// or SPI; 0: the frame has none.
std::uint32_t rss_hash(const RssContext& context, const FrameHeaders& headers);

// RSS contexts, by the number that flow rules name.
class RssTable {
 public:
  explicit RssTable(std::uint32_t most) : most_(most) {}

  bool add(Qpn number, RssContext context);  // false: no room, or the number exists
  bool remove(Qpn number);
  const RssContext* find(Qpn number) const;
  bool uses(Qpn queue) const;
  void clear() { contexts_.clear(); }

 private:
  const std::uint32_t most_;
  std::map<std::uint32_t, RssContext> contexts_;
};

}  // namespace rnicsim::nic
