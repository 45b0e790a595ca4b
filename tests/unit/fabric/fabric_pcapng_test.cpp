// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <unistd.h>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "model/fabric/pcapng.h"

namespace rnicsim::fabric::pcapng_test {
namespace {

std::vector<std::byte> frame_of(std::size_t header, std::size_t payload, std::size_t trailer) {
  std::vector<std::byte> frame(header, std::byte{0x11});
  frame.insert(frame.end(), payload, std::byte{0x22});
  frame.insert(frame.end(), trailer, std::byte{0x33});
  return frame;
}

std::uint32_t word(const std::string& bytes, std::size_t at) {
  std::uint32_t value;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

TEST(Pcapng, WritesTheBlocksOfTheFormat) {
  const auto path = std::filesystem::temp_directory_path() / ("rnicsim_pcapng_" + std::to_string(getpid()));
  {
    PcapngWriter writer(path.string());
    const auto first = writer.add_interface("h0");
    EXPECT_EQ(first, 0u);
    EXPECT_EQ(writer.add_interface("h1"), 1u);
    writer.write(1, Duration{5'000'000'123'999}, frame_of(60, 5, 7));
    writer.write(0, Duration{}, frame_of(60, 5, 7), "lost");
    writer.flush();
    EXPECT_EQ(writer.error(), "");
  }
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::filesystem::remove(path);
  std::vector<std::pair<std::uint32_t, std::size_t>> blocks;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto length = word(bytes, at + 4);
    ASSERT_EQ(length % 4, 0u);
    ASSERT_EQ(word(bytes, at + length - 4), length);
    blocks.emplace_back(word(bytes, at), at);
    at += length;
  }
  ASSERT_EQ(blocks.size(), 5u);
  EXPECT_EQ(blocks[0].first, 0x0a0d0d0au);
  EXPECT_EQ(word(bytes, 8), 0x1a2b3c4du);
  EXPECT_EQ(blocks[1].first, 1u);
  EXPECT_EQ(blocks[3].first, 6u);
  const auto packet = blocks[3].second;
  const std::uint64_t ns = std::uint64_t{word(bytes, packet + 12)} << 32 | word(bytes, packet + 16);
  EXPECT_EQ(word(bytes, packet + 8), 1u);
  EXPECT_EQ(ns, 5'000'000'123u);
  EXPECT_EQ(word(bytes, packet + 20), 72u);
  EXPECT_EQ(bytes.substr(packet + 28, 72), std::string(60, '\x11') + std::string(5, '\x22') + std::string(7, '\x33'));
  EXPECT_EQ(word(bytes, packet + 4), 12u + 20 + 72);
  const auto commented = blocks[4].second;
  EXPECT_EQ(bytes.substr(commented + 28 + 72, 12), std::string("\x01\0\x04\0lost\0\0\0\0", 12));
}

TEST(Pcapng, ReportsWhyItCannotWrite) {
  PcapngWriter missing("/nonexistent/folder/file.pcapng");
  EXPECT_NE(missing.error().find("No such file"), std::string::npos);
  PcapngWriter full("/dev/full");
  full.write(full.add_interface("h0"), {}, frame_of(60, 4000, 4));
  full.flush();
  EXPECT_NE(full.error(), "");
}

}  // namespace
}  // namespace rnicsim::fabric::pcapng_test
