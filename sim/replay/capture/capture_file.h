// SPDX-License-Identifier: Apache-2.0
// Reads the frames of a capture file, pcap or pcapng.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "model/base/units.h"

namespace rnicsim::sim::replay {

struct CapturedFrame {
  std::uint32_t number = 0;  // in the file, from 1, as other tools count
  std::uint32_t length = 0;  // on the wire; greater than bytes.size(): the capture cut the frame
  std::vector<std::byte> bytes;
  Duration time{};  // since the first frame
};

// ConfigError: not a capture, a truncated file, or not Ethernet.
std::vector<CapturedFrame> read_capture(const std::filesystem::path& path);

}  // namespace rnicsim::sim::replay
