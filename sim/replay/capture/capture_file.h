// Capture files, pcap and pcapng, as the frames that are in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "model/base/units.h"

namespace rnicsim::sim::replay {

struct CapturedFrame {
  std::uint32_t number = 0;  // in the file, from 1: what other tools show
  std::uint32_t length = 0;  // on the wire; more than there are bytes: the capture cut it
  std::vector<std::byte> bytes;
  Duration time{};  // since the first frame
};

// ConfigError: not a capture, a truncated one, or not of Ethernet.
std::vector<CapturedFrame> read_capture(const std::filesystem::path& path);

}  // namespace rnicsim::sim::replay
