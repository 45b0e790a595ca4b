// SPDX-License-Identifier: Apache-2.0
// Packet pacing: frames leave no sooner than their rate allows (ibv_modify_qp_rate_limit(3)).
#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "model/nic/capability_params.h"
#include "tests/verbs/raw/raw_packets.h"

namespace rnicsim::testing {
namespace {

constexpr std::uint32_t kRate = 100'000;  // kb/s
constexpr std::size_t kFrame = 996;       // plus 4 bytes of FCS
constexpr Duration kSpacing{80'000'000};  // time between frames at that rate
constexpr Duration kAtOnce{8'000'000};

class RawPacing : public RawPackets {
 protected:
  void SetUp() override {
    RawPackets::SetUp();
    if (!IsSkipped() && capabilities().max_rate_limit == 0) GTEST_SKIP() << "nic.capabilities.max_rate_limit";
  }

  static int limit(ibv_qp* qp, std::uint32_t rate, std::uint32_t burst = 0) {
    ibv_qp_rate_limit_attr attributes{};
    attributes.rate_limit = rate;
    attributes.max_burst_sz = burst;
    return ibv_modify_qp_rate_limit(qp, &attributes);
  }
  // Posts all frames at once.
  static void post(Endpoint& end, ibv_qp* qp, std::size_t frames) {
    std::ranges::copy(ethernet_frame(kFrame), end.buffer.begin());
    ibv_sge sge{reinterpret_cast<std::uint64_t>(end.buffer.data()), kFrame, end.mr->lkey};
    std::vector<ibv_send_wr> list(frames);
    for (std::size_t i = 0; i < frames; ++i) {
      list[i].opcode = IBV_WR_SEND;
      list[i].sg_list = &sge;
      list[i].num_sge = 1;
      list[i].next = i + 1 < frames ? &list[i + 1] : nullptr;
    }
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(qp, list.data(), &bad), 0);
  }
  static void await(ibv_cq* cq, std::size_t completions) {
    ibv_wc wc{};
    while (completions > 0)
      if (ibv_poll_cq(cq, 1, &wc) == 1) --completions;
  }
  std::vector<Duration> gaps() const {
    std::vector<Duration> found;
    for (std::size_t i = 1; i < wire().size(); ++i) found.push_back(wire()[i].at - wire()[i - 1].at);
    return found;
  }
  // After its pacing time a frame still waits for its translation and payload, for varying times. An engine with jitter
  // (RNICSIM_JITTER of rnicsim_test.cmake) also stalls for eight times 300 ns.
  static void expect_gap(Duration gap, Duration expected) {
    const char* sets = std::getenv("RNICSIM_TEST_SETS");
    const bool has_jitter = sets != nullptr && std::string_view(sets).find("nic.jitter") != std::string_view::npos;
    const double slack = has_jitter ? 3'900'000 : 1'500'000;
    EXPECT_NEAR(double(gap.ps), double(expected.ps), slack);
  }
  void expect_gaps(Duration expected) const {
    const auto found = gaps();
    ASSERT_GE(found.size(), 2u);
    for (std::size_t i = 0; i < found.size(); ++i) expect_gap(found[i], expected);
  }
  void run_paced(std::uint32_t rate, std::uint32_t burst, std::size_t frames) {
    run_alone([&](Endpoint& end) {
      RawQueue own(end, 0);
      ASSERT_EQ(limit(own.qp, rate, burst), 0);
      post(end, own.qp, frames);
      await(own.cq, frames);
    });
    ASSERT_EQ(wire().size(), frames);
  }
};

TEST_F(RawPacing, WithoutALimitTheyLeaveAtLineRate) {
  run_paced(0, 0, 6);
  for (const auto gap : gaps()) EXPECT_LT(gap, kAtOnce);
}

TEST_F(RawPacing, TheyLeaveAtTheirRate) {
  run_paced(kRate, 0, 6);
  expect_gaps(kSpacing);
}

TEST_F(RawPacing, TwiceTheRateIsHalfTheGap) {
  run_paced(2 * kRate, 0, 4);
  expect_gaps(Duration{kSpacing.ps / 2});
}

// Unused tokens of the bucket are kept: from the burst's first frame on the mean rate is the limit.
TEST_F(RawPacing, ABurstLeavesAtOnce) {
  run_paced(kRate, 3 * (kFrame + 4), 8);
  const auto found = gaps();
  for (std::size_t i = 0; i < 3; ++i) EXPECT_LT(found[i], kAtOnce) << i;
  for (std::size_t i = 4; i < found.size(); ++i) expect_gap(found[i], kSpacing);
  EXPECT_NEAR(double((wire()[7].at - wire()[0].at).ps), 4.0 * double(kSpacing.ps), 0.02 * double(kSpacing.ps));
}

// The lowest rate with the largest burst: a product beyond 64 bits.
TEST_F(RawPacing, ABurstWithoutEndLeavesAtOnce) {
  run_paced(1, 0xffffffff, 4);
  for (const auto gap : gaps()) EXPECT_LT(gap, kAtOnce);
}

TEST_F(RawPacing, APaddedFrameCountsWhole) {
  run_alone([&](Endpoint& end) {
    RawQueue own(end, 0);
    ASSERT_EQ(limit(own.qp, kRate / 10), 0);
    for (int i = 0; i < 3; ++i) own.send(ethernet_frame(20));
  });
  expect_gaps(Duration{64 * 800'000});
}

TEST_F(RawPacing, WithoutTheLimitWhatWaitsLeaves) {
  run_alone([&](Endpoint& end) {
    RawQueue own(end, 0);
    ASSERT_EQ(limit(own.qp, 1), 0);  // one frame in 8 s
    post(end, own.qp, 3);
    EXPECT_EQ(query(own.qp).rate_limit, 1u);
    ibv_wc wc{};
    while (ibv_poll_cq(own.cq, 1, &wc) == 0) {}
    pass(0, kSpacing);
    EXPECT_EQ(ibv_poll_cq(own.cq, 1, &wc), 0);
    ASSERT_EQ(limit(own.qp, 0), 0);
    EXPECT_EQ(query(own.qp).rate_limit, 0u);
    await(own.cq, 2);
  });
  EXPECT_LT(wire()[2].at - wire()[1].at, kAtOnce);
}

TEST_F(RawPacing, ByModifyQpToo) {
  run_alone([&](Endpoint& end) {
    RawQueue own(end, 0);
    ibv_qp_attr attributes{};
    attributes.rate_limit = kRate;
    ASSERT_EQ(ibv_modify_qp(own.qp, &attributes, IBV_QP_RATE_LIMIT), 0);
    post(end, own.qp, 3);
    await(own.cq, 3);
  });
  expect_gaps(kSpacing);
}

TEST_F(RawPacing, RefusesWhatTheDeviceHasNot) {
  run_alone([&](Endpoint& end) {
    ibv_device_attr_ex device{};
    ASSERT_EQ(ibv_query_device_ex(end.context, nullptr, &device), 0);
    const auto& caps = device.packet_pacing_caps;
    EXPECT_EQ(caps.supported_qpts, 1u << IBV_QPT_RAW_PACKET);
    RawQueue own(end, 0);
    EXPECT_EQ(limit(own.qp, caps.qp_rate_limit_max), 0);
    EXPECT_EQ(limit(own.qp, caps.qp_rate_limit_max + 1), EINVAL);
    EXPECT_EQ(limit(own.qp, 0, 1), EINVAL) << "a burst of no rate";
    EXPECT_EQ(query(own.qp).rate_limit, caps.qp_rate_limit_max) << "what was refused changed nothing";
    ibv_qp_rate_limit_attr unknown{};
    unknown.comp_mask = 1;
    EXPECT_EQ(ibv_modify_qp_rate_limit(own.qp, &unknown), EINVAL);
    EXPECT_EQ(limit(end.qp, kRate), EOPNOTSUPP) << "RC";
    const auto handle = std::exchange(own.qp->handle, 12345);
    EXPECT_EQ(limit(own.qp, kRate), ENOENT);
    own.qp->handle = handle;
    for (const auto state : {IBV_QPS_SQD, IBV_QPS_ERR, IBV_QPS_RESET}) {
      ASSERT_EQ(move(own.qp, state), 0);
      EXPECT_EQ(limit(own.qp, kRate), EINVAL) << "not in RTS but " << state;
    }
  });
}

}  // namespace
}  // namespace rnicsim::testing
