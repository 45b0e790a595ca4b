// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/vm/wire_socket.h"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>

#include "sim/config/config_error.h"
#include "sim/guest/transactor/path_socket.h"

namespace rnicsim::sim {

Descriptor connect_to_wire(const std::string& wire) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kPatience{10};
  constexpr std::string_view kUnix = "unix:";
  if (!wire.starts_with(kUnix)) throw ConfigError(fmt::format("--wire '{}': unix:PATH is needed", shown(wire)));
  const auto path = wire.substr(kUnix.size());
  for (const auto end = Clock::now() + kPatience;;) {
    if (auto socket = connect_to_path(path)) return socket;
    const int error = errno;
    if ((error != ENOENT && error != ECONNREFUSED) || Clock::now() >= end)
      throw ConfigError(fmt::format("--wire: {}: {}", shown(path), std::strerror(error)));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace rnicsim::sim
