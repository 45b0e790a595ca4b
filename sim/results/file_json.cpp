// SPDX-License-Identifier: Apache-2.0
#include "sim/results/file_json.h"

#include <fmt/format.h>
#include <isa-l/crc.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <string>

namespace rnicsim::sim {
namespace {

std::string crc32_of_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::array<char, 64 << 10> part{};
  std::uint32_t crc = 0;
  while (in.read(part.data(), part.size()), in.gcount() > 0)
    crc = crc32_gzip_refl(crc, reinterpret_cast<const unsigned char*>(part.data()), std::uint64_t(in.gcount()));
  return fmt::format("{:08x}", crc);
}

}  // namespace

Json file_json(const std::filesystem::path& path) {
  return {{"file", path.filename().string()}, {"crc32", crc32_of_file(path)}};
}

}  // namespace rnicsim::sim
