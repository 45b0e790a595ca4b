// Defaults, from the files of /etc/rdma/rsocket.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace rnicsim::rsockets {

inline constexpr const char* kSettingsFolder = "/etc/rdma/rsocket";
// A sender waits until so many bytes fit; a datagram, with its header, is at most as long.
inline constexpr std::uint32_t kLowWater = 2048;

struct Settings {
  std::uint32_t receive_bytes = 1 << 17;
  std::uint32_t send_bytes = 1 << 17;
  std::uint16_t send_queue = 384;
  std::uint16_t receive_queue = 384;
  std::uint16_t inline_bytes = 64;
  std::uint16_t iomap_entries = 0;
  std::chrono::microseconds polling_time{10};  // before a call goes to sleep
  std::chrono::milliseconds wake_up_interval{5000};

  static Settings read(const std::string& folder);
};

// Read once.
const Settings& settings();

}  // namespace rnicsim::rsockets
