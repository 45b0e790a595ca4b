// What a GID tells by itself.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <optional>

namespace rnicsim::verbs {

using Mac = std::array<std::uint8_t, 6>;

// The MAC address that an IPv6 link-local GID was made of (EUI-64).
std::optional<Mac> mac_of_link_local(const ibv_gid& gid);

}  // namespace rnicsim::verbs
