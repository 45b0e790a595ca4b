#include "verbs/ibverbs/gid.h"

#include <algorithm>

namespace rnicsim::verbs {

std::optional<Mac> mac_of_link_local(const ibv_gid& gid) {
  const std::uint8_t* raw = gid.raw;
  const bool link_local = raw[0] == 0xfe && raw[1] == 0x80 && std::ranges::count(raw + 2, raw + 8, 0) == 6;
  if (!link_local || raw[11] != 0xff || raw[12] != 0xfe) return std::nullopt;
  return Mac{std::uint8_t(raw[8] ^ 2), raw[9], raw[10], raw[13], raw[14], raw[15]};
}

}  // namespace rnicsim::verbs
