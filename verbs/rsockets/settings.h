// SPDX-License-Identifier: Apache-2.0
// Default sizes and times, read from files in /etc/rdma/rsocket.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace rnicsim::rsockets {

inline constexpr const char* kSettingsFolder = "/etc/rdma/rsocket";
// Bytes. A sender waits until this much space is free; a datagram with its header is at most this long.
inline constexpr std::uint32_t kLowWater = 2048;

struct Settings {
  std::uint32_t receive_bytes = 1 << 17;
  std::uint32_t send_bytes = 1 << 17;
  std::uint16_t send_queue = 384;
  std::uint16_t receive_queue = 384;
  std::uint16_t inline_bytes = 64;
  std::uint16_t iomap_entries = 0;
  std::chrono::microseconds polling_time{10};  // time that a call polls before it sleeps
  std::chrono::milliseconds wake_up_interval{5000};

  static Settings read(const std::string& folder);
};

// Read once per process.
const Settings& settings();

}  // namespace rnicsim::rsockets
