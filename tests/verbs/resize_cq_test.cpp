// SPDX-License-Identifier: Apache-2.0
// Completion queues that grow and shrink while they contain completions and get new ones.
#include <gmock/gmock.h>

#include <random>

#include "tests/verbs/rc_pair.h"

namespace rnicsim::testing {
namespace {

class ResizeCq : public RcPair {
 protected:
  // Completions without a peer: receives [first, first + count) are flushed.
  static void flush(Endpoint& end, std::uint64_t first, std::uint64_t count) {
    for (auto i = first; i < first + count; ++i) ASSERT_EQ(end.receive(0, 64, i), 0);
  }
  static void into_error(Endpoint& end) {
    end.to_init();
    ASSERT_EQ(move(end.qp, IBV_QPS_ERR), 0);
  }
  static EndpointOptions entries(int count) {
    EndpointOptions options;
    options.cq_entries = count;
    return options;
  }
};

TEST_F(ResizeCq, Sizes) {
  run_alone([](Endpoint& end) {
    ibv_device_attr device;
    ASSERT_EQ(ibv_query_device(end.context, &device), 0);
    const int before = end.cq->cqe;
    for (const int entries : {0, -1, device.max_cqe + 1}) EXPECT_EQ(ibv_resize_cq(end.cq, entries), EINVAL) << entries;
    EXPECT_EQ(end.cq->cqe, before);
    EXPECT_EQ(ibv_resize_cq(end.cq, device.max_cqe), ENOMEM);  // more memory than a process may use
    EXPECT_EQ(end.cq->cqe, before);
    for (const int entries : {1, 2, 3, 1000, 4096, 64}) {
      EXPECT_EQ(ibv_resize_cq(end.cq, entries), 0) << entries;
      EXPECT_GE(end.cq->cqe, entries);
    }
    const auto good = std::exchange(end.cq->handle, 0x7fffff);
    EXPECT_EQ(ibv_resize_cq(end.cq, 64), ENOENT);
    end.cq->handle = good;
  });
}

TEST_F(ResizeCq, WhatIsThereComesAlong) {
  run_alone([&](Endpoint& end) {
    into_error(end);
    flush(end, 0, 12);
    pass(0, kSettled);
    EXPECT_EQ(ibv_resize_cq(end.cq, 11), EINVAL);
    EXPECT_EQ(ibv_resize_cq(end.cq, 12), 0);
    EXPECT_EQ(end.cq->cqe, 16);
    expect_completions(end.cq, IBV_WC_WR_FLUSH_ERR, 0, 5);
    EXPECT_EQ(ibv_resize_cq(end.cq, 256), 0);
    flush(end, 12, 8);
    EXPECT_EQ(ibv_resize_cq(end.cq, 32), 0);
    expect_completions(end.cq, IBV_WC_WR_FLUSH_ERR, 5, 15);
    ibv_wc wc;
    EXPECT_EQ(ibv_poll_cq(end.cq, 1, &wc), 0);
  });
}

// A full CQ grows in time.
TEST_F(ResizeCq, GrowsWhenFull) {
  run_alone(
      [&](Endpoint& end) {
        never_wait(end.context->async_fd);
        into_error(end);
        flush(end, 0, 4);
        pass(0, kSettled);
        ASSERT_EQ(ibv_resize_cq(end.cq, 8), 0);
        flush(end, 4, 4);
        pass(0, kSettled);
        EXPECT_TRUE(take_async_events(end.context).empty());
        expect_completions(end.cq, IBV_WC_WR_FLUSH_ERR, 0, 8);
      },
      entries(4));
}

TEST_F(ResizeCq, TheNewSizeIsTheLimit) {
  run_alone(
      [&](Endpoint& end) {
        never_wait(end.context->async_fd);
        ASSERT_EQ(ibv_resize_cq(end.cq, 4), 0);
        into_error(end);
        flush(end, 0, 5);
        pass(0, Duration{50'000'000});
        EXPECT_THAT(take_async_events(end.context), ::testing::Contains(IBV_EVENT_CQ_ERR));
        EXPECT_EQ(ibv_resize_cq(end.cq, 64), EINVAL);  // failed CQ
        expect_completions(end.cq, IBV_WC_WR_FLUSH_ERR, 0, 4);
      },
      entries(32));
}

TEST_F(ResizeCq, StaysArmed) {
  EndpointOptions options;
  options.channel = true;
  run_alone(
      [&](Endpoint& end) {
        never_wait(end.channel->fd);
        into_error(end);
        flush(end, 0, 3);
        pass(0, kSettled);
        ASSERT_EQ(ibv_req_notify_cq(end.cq, 0), 0);
        pass(0, kSettled);
        ASSERT_EQ(ibv_req_notify_cq(end.cq, 0), 0);  // the previous event is unread: arms for later CQEs alone
        ASSERT_EQ(ibv_resize_cq(end.cq, 512), 0);
        pass(0, kSettled);
        EXPECT_EQ(take_cq_events(end.channel), 1);  // of the CQEs before the resize: moving them is no completion
        flush(end, 3, 1);
        pass(0, kSettled);
        EXPECT_EQ(take_cq_events(end.channel), 1);
        expect_completions(end.cq, IBV_WC_WR_FLUSH_ERR, 0, 4);
      },
      options);
}

// An event delayed by moderation comes at its time.
TEST_F(ResizeCq, ModerationGoesOn) {
  EndpointOptions options;
  options.channel = true;
  run_alone(
      [&](Endpoint& end) {
        never_wait(end.channel->fd);
        into_error(end);
        ibv_modify_cq_attr attributes{.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = {3, 4095}};
        ASSERT_EQ(ibv_modify_cq(end.cq, &attributes), 0);
        ASSERT_EQ(ibv_req_notify_cq(end.cq, 0), 0);
        flush(end, 0, 2);
        pass(0, kSettled);
        ASSERT_EQ(ibv_resize_cq(end.cq, 8), 0);
        EXPECT_EQ(take_cq_events(end.channel), 0);
        flush(end, 2, 1);
        pass(0, kSettled);
        EXPECT_EQ(take_cq_events(end.channel), 1);
      },
      options);
}

// Receives of h0 complete continuously, while its CQ gets random sizes that hold the outstanding completions.
class ResizeUnderTraffic : public ResizeCq, public ::testing::WithParamInterface<std::uint64_t> {};

TEST_P(ResizeUnderTraffic, NothingIsLostOrDoubled) {
  constexpr std::uint64_t kMessages = 400;
  constexpr int kWindow = 16;
  run_connected(
      [&](Endpoint& end) {
        std::mt19937_64 random(GetParam());
        never_wait(end.context->async_fd);
        std::uint64_t posted = 0, polled = 0, resizes = 0;
        const auto post_some = [&] {
          while (posted < kMessages && posted - polled < kWindow) ASSERT_EQ(end.receive(0, 64, posted++), 0);
        };
        post_some();
        meet(0);
        while (polled < kMessages) {
          if (random() % 3 == 0) {
            ASSERT_EQ(ibv_resize_cq(end.cq, kWindow << random() % 6), 0);
            ++resizes;
          }
          if (random() % 4 == 0) pass(0, Duration{std::int64_t(random() % 3'000'000)});
          ibv_wc wc[8];
          const int count = ibv_poll_cq(end.cq, 1 + int(random() % 8), wc);
          for (int i = 0; i < count; ++i) {
            ASSERT_EQ(wc[i].status, IBV_WC_SUCCESS);
            ASSERT_EQ(wc[i].wr_id, polled);
            ASSERT_EQ(wc[i].byte_len, 8 + polled % 32);
            ++polled;
          }
          post_some();
        }
        EXPECT_GT(resizes, 20u);
        EXPECT_FALSE(completion_soon(end.cq, 10));
        EXPECT_TRUE(take_async_events(end.context).empty());
      },
      [&](Endpoint& end) {
        meet(1);
        for (std::uint64_t i = 0; i < kMessages; ++i) {
          ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, std::uint32_t(8 + i % 32))), 0);
          if (i % 8 != 7) continue;
          for (int j = 0; j < 8; ++j) EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        }
      },
      entries(kWindow));
}

INSTANTIATE_TEST_SUITE_P(Seeds, ResizeUnderTraffic, ::testing::Range<std::uint64_t>(1, 5));

}  // namespace
}  // namespace rnicsim::testing
