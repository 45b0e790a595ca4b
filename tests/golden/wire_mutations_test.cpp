// The capture of two Soft-RoCE guests with one bit of one answer flipped, and its ICRC right again: each bit of PSN,
// syndrome and MSN, of each answer. Every one must show, but for the credits, which are free.
#include <gtest/gtest.h>

#include <filesystem>

#include "model/nic/model_engine.h"
#include "sim/replay/replay.h"
#include "tests/support/wire_frames.h"

namespace rnicsim::sim::replay {
namespace {

constexpr std::size_t kTransportAt = 14 + 20 + 8;
constexpr std::size_t kPsnAt = kTransportAt + 9;
constexpr std::size_t kSyndromeAt = kTransportAt + 12;
constexpr std::size_t kEnd = kSyndromeAt + 4;

class WireMutations : public testing::TestWithParam<const char*> {
 protected:
  std::uint64_t differences() const {
    nic::ModelEngine engine({});
    return replay_frames(frames, *parse_address(GetParam()), engine).differences();
  }

  std::vector<CapturedFrame> frames =
      read_capture(std::filesystem::path(RNICSIM_SOURCE_DIR) / "traces" / "wire" / "rxe-two-guests.pcap");
};

TEST_P(WireMutations, EachShows) {
  ASSERT_EQ(differences(), 0u);
  const auto address = *parse_address(GetParam());
  const auto capture = parse_capture(frames);
  std::size_t tried = 0;
  for (const auto& packet : capture.packets) {
    const auto& row = packet.row();
    if (!row.response() || packet.addresses.source != address) continue;
    auto& frame = frames[packet.frame - 1];
    for (auto at = kPsnAt; at < (row.has(roce::header::kAeth) ? kEnd : kSyndromeAt); ++at)
      for (unsigned bit = 0; bit < 8; ++bit) {
        const bool free = at == kSyndromeAt && bit < 5;
        const auto flip = std::byte(1u << bit);
        frame.bytes[at] ^= flip;
        test::seal(frame);
        EXPECT_EQ(differences() == 0, free)
            << row.name << " frame " << frame.number << " byte " << at << " bit " << bit;
        frame.bytes[at] ^= flip;
        test::seal(frame);
        ++tried;
      }
  }
  EXPECT_GT(tried, 500u);
  EXPECT_EQ(differences(), 0u);
}

INSTANTIATE_TEST_SUITE_P(BothAddresses, WireMutations, testing::Values("10.0.0.1", "10.0.0.2"));

}  // namespace
}  // namespace rnicsim::sim::replay
