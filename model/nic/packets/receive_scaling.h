// Receive-side scaling: a hash over a frame's fields says which of several receive queues gets it (Microsoft's Toeplitz
// hash; ibv_create_qp_ex(3), IBV_RX_HASH_*).
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

// Over those of the fields that the frame has: source address, destination address, source port, destination port or
// SPI; 0 when it has none.
std::uint32_t rss_hash(const RssContext& context, const FrameHeaders& headers);

// By the number that flow rules name.
class RssTable {
 public:
  explicit RssTable(std::uint32_t most) : most_(most) {}

  bool add(Qpn number, RssContext context);  // false: no room, or it exists
  bool remove(Qpn number);
  const RssContext* find(Qpn number) const;
  bool uses(Qpn queue) const;
  void clear() { contexts_.clear(); }

 private:
  const std::uint32_t most_;
  std::map<std::uint32_t, RssContext> contexts_;
};

}  // namespace rnicsim::nic
