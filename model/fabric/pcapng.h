// SPDX-License-Identifier: Apache-2.0
// Writes a pcapng file (IETF draft-ietf-opsawg-pcapng) of Ethernet frames, with timestamps in nanoseconds of simulated
// time.
#pragma once

#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/units.h"

namespace rnicsim::fabric {

class PcapngWriter {
 public:
  // error() tells afterwards whether the file could be created.
  explicit PcapngWriter(const std::string& path);

  std::uint32_t add_interface(const std::string& name);
  void write(std::uint32_t interface, Duration time, std::span<const std::byte> frame, std::string_view comment = {});
  void flush();

  // Message of the first failure; empty: no failure. Nothing is written after a failure.
  const std::string& error() const { return error_; }

 private:
  void put16(std::uint16_t value);
  void put32(std::uint32_t value);
  void put_padded(const void* data, std::size_t bytes);
  void put_option(std::uint16_t code, const void* data, std::size_t bytes);
  void write_block(std::uint32_t type);  // writes and clears the body collected in block_

  std::string path_;
  std::ofstream file_;
  std::string error_;
  std::uint32_t interfaces_ = 0;
  std::vector<std::byte> block_;
};

}  // namespace rnicsim::fabric
