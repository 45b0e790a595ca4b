// SPDX-License-Identifier: Apache-2.0
// QPs of one device connected to one another: no packet is on the cable.
#include <algorithm>

#include "model/nic/nic.h"
#include "model/nic/nic_counters.h"
#include "sim/adapter.h"
#include "tests/verbs/rc_pair.h"

namespace rnicsim::testing {
namespace {

class LoopbackOf : public RcPair {};

TEST_F(LoopbackOf, AQueuePairConnectedToItself) {
  run_alone([](Endpoint& end) {
    end.connect(end.address());
    std::fill_n(end.buffer.begin(), 10'000, 0x5a);
    ASSERT_EQ(end.receive(20'000, 10'000, 7), 0);
    ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 10'000)), 0);
    bool received = false, sent = false;
    for (int i = 0; i < 2; ++i) {
      const ibv_wc wc = end.completion();
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      (wc.opcode == IBV_WC_RECV ? received : sent) = true;
    }
    EXPECT_TRUE(received && sent);
    EXPECT_TRUE(std::equal(end.buffer.begin(), end.buffer.begin() + 10'000, end.buffer.begin() + 20'000));
  });
  EXPECT_TRUE(wire().empty());
  EXPECT_GT(host(0).nic().counters().loopback.frames, 10u);
}

TEST_F(LoopbackOf, TwoQueuePairsOfAProcess) {
  run_alone([](Endpoint& end) {
    Endpoint other;
    end.connect(other.address());
    other.connect(end.address());
    std::fill_n(end.buffer.begin(), 30'000, 0x77);
    ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, 30'000)), 0);
    EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
    EXPECT_EQ(std::count(other.buffer.begin(), other.buffer.end(), 0x77), 30'000);
    ASSERT_EQ(other.post(other.request(IBV_WR_RDMA_READ, 40'000, 20'000)), 0);
    EXPECT_EQ(other.completion().status, IBV_WC_SUCCESS);
    EXPECT_EQ(std::count(other.buffer.begin(), other.buffer.end(), 0x77), 50'000);
    ASSERT_EQ(end.post(end.fetch_add(50'000, 5, 60'000)), 0);
    EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
    EXPECT_EQ(other.buffer[60'000], 5);
  });
  EXPECT_TRUE(wire().empty());
}

// All GIDs of the own device: IPv6 link-local, IPv4, and global IPv6.
TEST_F(LoopbackOf, EveryGid) {
  run_alone([](Endpoint&) {
    for (const std::uint8_t index : {0, 1, 2}) {
      EndpointOptions options;
      options.gid_index = index;
      Endpoint end(options);
      end.connect(end.address());
      ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, 100, 200)), 0);
      EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
    }
  });
  EXPECT_TRUE(wire().empty());
}

// The errors of the transport are the same.
TEST_F(LoopbackOf, NobodyAnswers) {
  EndpointOptions options;
  options.timeout = 4;
  options.retry_count = 1;
  run_alone(
      [](Endpoint& end) {
        auto nobody = end.address();
        nobody.qpn = 0x3ffff;
        end.connect(nobody);
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, 100)), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_RETRY_EXC_ERR);
      },
      options);
  EXPECT_TRUE(wire().empty());
}

}  // namespace
}  // namespace rnicsim::testing
