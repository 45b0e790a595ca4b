// Which hosts there are, and which cable joins which.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "model/abi/attach.h"

namespace rnicsim::sim {

struct Topology {
  std::vector<abi::HostEntry> hosts;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> cables;  // by index of host

  std::optional<std::uint32_t> find(std::string_view name) const;
};

// The host that is number `index`, where the file says no more than its name: 10.0.index.1/16, fd00::index:1/64,
// 02:00:00:00:index:01.
abi::HostEntry default_host(std::uint32_t index, std::string_view name);

}  // namespace rnicsim::sim
