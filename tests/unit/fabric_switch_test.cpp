// Where a switch's frames leave.
#include <gtest/gtest.h>

#include <vector>

#include "model/fabric/switch.h"

namespace rnicsim::fabric {
namespace {

class SwitchTest : public ::testing::Test {
 protected:
  SwitchTest() {
    sc_core::sc_get_curr_simcontext()->reset();
    box_ = std::make_unique<Switch>("box", SwitchParams{}, LineTiming{}, 4);
    for (std::size_t port = 0; port < 4; ++port)
      box_->out(port).bind([this, port](Frame&&) { left_.push_back({port, now()}); });
  }
  void receive(std::size_t from, std::array<std::uint8_t, 6> mac) {
    std::array<std::byte, 100> bytes{};
    for (std::size_t i = 0; i < mac.size(); ++i) bytes[i] = std::byte{mac[i]};
    box_->receive(from, Frame::of(Payload::copy_of(bytes)), {});
  }
  std::vector<std::size_t> ports() {
    sc_core::sc_start(2, sc_core::SC_US);
    std::vector<std::size_t> ports;
    for (const auto& [port, at] : left_) ports.push_back(port);
    std::ranges::sort(ports);
    return ports;
  }

  std::unique_ptr<Switch> box_;
  std::vector<std::pair<std::size_t, Duration>> left_;
};

constexpr std::array<std::uint8_t, 6> kGroup{1, 0, 0x5e, 1, 2, 3};

TEST_F(SwitchTest, AGroupsFrameLeavesByEveryPortOfTheTreeButItsOwn) {
  for (const std::size_t port : {0, 1, 3}) box_->flood(port);
  receive(1, kGroup);
  EXPECT_EQ(ports(), (std::vector<std::size_t>{0, 3}));
  EXPECT_EQ(left_[0].second, left_[1].second);
  EXPECT_EQ(box_->counters().frames, 1u);
  EXPECT_EQ(box_->counters().bytes, 100u);
  EXPECT_EQ(box_->counters().unknown, 0u);
}

TEST_F(SwitchTest, OneForAHostLeavesByItsPort) {
  for (std::size_t port = 0; port < 4; ++port) box_->flood(port);
  box_->learn({2, 0, 0, 0, 0, 9}, 2);
  receive(1, {2, 0, 0, 0, 0, 9});
  receive(1, {2, 0, 0, 0, 0, 8});
  EXPECT_EQ(ports(), (std::vector<std::size_t>{2}));
  EXPECT_EQ(box_->counters().unknown, 1u);
}

TEST_F(SwitchTest, OneTooShortForAnAddressIsForNobody) {
  box_->flood(0);
  box_->receive(1, Frame::of(Payload::copy_of(std::array{std::byte{1}, std::byte{2}})), {});
  EXPECT_EQ(ports(), (std::vector<std::size_t>{}));
  EXPECT_EQ(box_->counters().unknown, 1u);
}

}  // namespace
}  // namespace rnicsim::fabric
