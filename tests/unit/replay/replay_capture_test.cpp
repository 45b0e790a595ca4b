// SPDX-License-Identifier: Apache-2.0
// Reading captures: valid files in both formats, and invalid files, each with an error that names the fault.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "model/fabric/pcapng.h"
#include "model/nic/engine/engine_factory.h"
#include "model/nic/engine/qp_context.h"
#include "model/nic/seam/qp_engine.h"
#include "sim/config/config_error.h"
#include "sim/replay/replay.h"
#include "tests/support/wire_frames.h"

namespace rnicsim::sim::replay {
namespace {

using test::Wire;

constexpr std::size_t kPcapHeader = 24;
constexpr std::size_t kLinkTypeAt = 20;
constexpr char kLinuxCooked = 113;

class Capture : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path); }
  void write(const std::string& content) const { std::ofstream(path, std::ios::binary) << content; }
  static std::string good() {
    std::ifstream file(std::filesystem::path(RNICSIM_SOURCE_DIR) / "traces/wire/rxe-two-guests.pcap", std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string error() const {
    try {
      parse_capture(read_capture(path));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }
  void expect_error(const std::string& part) const { EXPECT_NE(error().find(part), std::string::npos) << error(); }

  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("rnicsim_replay_" + std::to_string(getpid()));
};

TEST_F(Capture, ReadsPcap) {
  write(good());
  EXPECT_EQ(error(), "");
  EXPECT_EQ(read_capture(path).size(), 212u);
}

TEST_F(Capture, ReadsPcapng) {
  write(good());
  const auto frames = read_capture(path);
  {
    fabric::PcapngWriter writer(path.string());
    const auto interface = writer.add_interface("h0");
    for (const auto& frame : frames) writer.write(interface, {}, frame.bytes);
    writer.flush();
    ASSERT_EQ(writer.error(), "");
  }
  const auto again = read_capture(path);
  ASSERT_EQ(again.size(), frames.size());
  EXPECT_EQ(again.back().bytes, frames.back().bytes);
}

TEST_F(Capture, SaysThatThereIsNoFile) {
  expect_error(path.string());
  expect_error("No such file");
}

TEST_F(Capture, RefusesWhatIsNoCapture) {
  write("#!/bin/sh\necho this is not a capture, however long it may be\n");
  expect_error("not a readable capture");
  write("");
  expect_error("not a readable capture");
}

TEST_F(Capture, RefusesATruncatedFile) {
  for (const auto bytes : {kPcapHeader + 8, kPcapHeader + 16 + 40, good().size() - 1}) {
    write(good().substr(0, bytes));
    expect_error("broken after frame");
  }
  write(good().substr(0, kPcapHeader - 1));
  expect_error("not a readable capture");
}

TEST_F(Capture, RefusesAnotherLinkType) {
  auto bytes = good();
  bytes[kLinkTypeAt] = kLinuxCooked;
  write(bytes);
  expect_error("Ethernet frames are needed");
}

TEST_F(Capture, RefusesOneWithoutRoce) {
  write(good().substr(0, kPcapHeader));
  expect_error("no RoCEv2 packet");
}

TEST(Frames, CutFramesAreRefused) {
  Wire wire;
  wire.request(Wire::headers(roce::Opcode::send_only, 1), 100);
  wire.frames[0].bytes.resize(96);
  EXPECT_THROW(parse_capture(wire.frames), ConfigError);
}

TEST(Frames, TheVlanTagIsTakenOff) {
  Wire wire;
  wire.request(Wire::headers(roce::Opcode::send_only, 1), 100);
  const std::array<std::byte, 4> tag{std::byte{0x81}, std::byte{0}, std::byte{0x20}, std::byte{5}};
  wire.frames[0].bytes.insert(wire.frames[0].bytes.begin() + 12, tag.begin(), tag.end());
  wire.frames[0].length += 4;
  EXPECT_EQ(parse_capture(wire.frames).icrc_right(), 1u);
}

TEST(Frames, WhatIsRoceAndNotUnderstoodIsCounted) {
  Wire wire;
  wire.request(Wire::headers(roce::Opcode::send_only, 1), 100);
  wire.request(Wire::headers(roce::Opcode::send_only, 2), 100);
  wire.frames[1].bytes[14 + 20 + 8] = std::byte{0x81};  // a CNP
  const auto capture = parse_capture(wire.frames);
  EXPECT_EQ(capture.roce_frames(), 2u);
  ASSERT_EQ(capture.unparsed.size(), 1u);
  EXPECT_EQ(capture.unparsed[0].frame, 2u);
  EXPECT_EQ(capture.unparsed[0].error, roce::ParseError::bad_opcode);
}

TEST(Frames, GarbageIsNotRoce) {
  std::vector<CapturedFrame> frames;
  for (std::uint32_t bytes = 0; bytes < 80; ++bytes)
    frames.push_back({bytes + 1, bytes, std::vector<std::byte>(bytes, std::byte{8})});
  EXPECT_THROW(parse_capture(frames), ConfigError);
}

TEST(Addresses, BothFamilies) {
  EXPECT_EQ(parse_address("10.0.0.1"), Wire::address(1));
  EXPECT_EQ(parse_address("::ffff:10.0.0.1"), Wire::address(1));
  EXPECT_EQ(address_text(*parse_address("10.0.0.1")), "10.0.0.1");
  EXPECT_EQ(address_text(*parse_address("fe80::1")), "fe80::1");
  for (const auto* text : {"", "10.0.0", "10.0.0.256", "h0", "fe80::1%eth0"}) EXPECT_FALSE(parse_address(text)) << text;
}

TEST(Addresses, AnUnknownOneListsTheCapturesOwn) {
  Wire wire;
  wire.request(Wire::headers(roce::Opcode::send_only, 1), 4);
  const auto engine_owner = nic::make_model_engine({});
  auto& engine = *engine_owner;
  try {
    replay_frames(wire.frames, Wire::address(9), engine);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("10.0.0.9 is not in the capture"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("10.0.0.2, 10.0.0.1"), std::string::npos) << error.what();
  }
}

TEST(Addresses, OneThatOnlyAnsweredHasNothingToReplay) {
  Wire wire;
  wire.answer(roce::Opcode::acknowledge, 1, 0x1f, 1);
  const auto engine_owner = nic::make_model_engine({});
  auto& engine = *engine_owner;
  EXPECT_THROW(replay_frames(wire.frames, Wire::address(test::kNic), engine), ConfigError);
}

TEST(Addresses, OneWhoseTransportTheEngineLacksHasNothingToReplay) {
  Wire wire;
  wire.datagram(1, 7, 0x11, 20);
  const auto engine_owner = nic::make_model_engine({});
  auto& engine = *engine_owner;
  EXPECT_EQ(replay_frames(wire.frames, Wire::address(test::kNic), engine).environment.qps.size(), 1u);
  const auto other_owner = nic::make_model_engine({});
  auto& other = *other_owner;
  EXPECT_THROW(replay_frames(wire.frames, Wire::address(test::kNic), other, nullptr, {.uc = false, .ud = false}),
               ConfigError);
}

}  // namespace
}  // namespace rnicsim::sim::replay
