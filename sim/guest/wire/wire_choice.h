// SPDX-License-Identifier: Apache-2.0
// A `--wire HOST=...` option of the command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/config/topology.h"

namespace rnicsim::sim {

struct WireChoice {
  enum class Kind { listen, connect, tap };
  std::uint32_t host = 0;  // index in the topology
  Kind kind{};
  std::string place;  // the socket's path, or the TAP interface's name
};

// "h1=unix:PATH", "h1=unix:PATH,connect", "h1=tap:NAME". ConfigError: another form, no such host, a host with several
// NICs, a host named twice, or no host is left in the simulation.
std::vector<WireChoice> parse_wires(const std::vector<std::string>& texts, const Topology& topology);

}  // namespace rnicsim::sim
