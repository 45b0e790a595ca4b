// SPDX-License-Identifier: Apache-2.0
// Error statuses that need more than a request and its answer: a receive that an error consumes, work in both queues
// behind an error, and a responder whose CQ is full.
#include <gmock/gmock.h>

#include "tests/protocol/rc_wire.h"

namespace rnicsim::testing::rc_errors_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr Duration kMicrosecond{1'000'000};
constexpr std::uint32_t kBadKey = 0x00abcd00;

class Errors : public RcWire {
 protected:
  explicit Errors(const std::vector<std::string>& faults = {}) : RcWire(faults) {}

  // h0's request ends in `status`. h1 has posted receives 1 and 2; `looked`: its device has fetched them before.
  void run_refused(std::function<ibv_send_wr(Endpoint&)> request, ibv_wc_status status, Body afterwards,
                   const EndpointOptions& responder = {}, bool looked = false) {
    run_connected(
        [&](Endpoint& end) {
          meet(0);
          if (looked) {
            ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 8)), 0);
            EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
          }
          ASSERT_EQ(end.post(request(end)), 0);
          EXPECT_EQ(end.completion().status, status);
          EXPECT_EQ(end.state(), IBV_QPS_ERR);
          meet(0);
        },
        [&](Endpoint& end) {
          never_wait(end.context->async_fd);
          if (looked) {
            ASSERT_EQ(end.receive(0, 64, 99), 0);
          }
          for (std::uint64_t id = 1; id <= 2; ++id) ASSERT_EQ(end.receive(0, 64, id), 0);
          meet(1);
          if (looked) {
            EXPECT_EQ(end.completion().wr_id, 99u);
          }
          meet(1);
          EXPECT_EQ(end.state(), IBV_QPS_ERR);
          afterwards(end);
          EXPECT_FALSE(completion_soon(end.cq));
        },
        {}, responder);
  }
  static void expect_taken(Endpoint& end) {
    expect_completions(end.cq, IBV_WC_LOC_ACCESS_ERR, 1, 1);
    expect_completions(end.cq, IBV_WC_WR_FLUSH_ERR, 2, 1);
    EXPECT_THAT(take_async_events(end.context), IsEmpty());
  }
  static void expect_told_by_event(Endpoint& end) {
    expect_completions(end.cq, IBV_WC_WR_FLUSH_ERR, 1, 2);
    EXPECT_THAT(take_async_events(end.context), ElementsAre(IBV_EVENT_QP_ACCESS_ERR));
  }
};

TEST_F(Errors, WriteWithImmediateToABadRkeyTakesTheReceive) {
  run_refused(
      [](Endpoint& end) {
        auto wr = end.request(IBV_WR_RDMA_WRITE_WITH_IMM, 0, 64);
        wr.wr.rdma.rkey = kBadKey;
        return wr;
      },
      IBV_WC_REM_ACCESS_ERR, expect_taken);
}

TEST_F(Errors, WriteWithImmediateBeyondTheRegionTakesTheReceive) {
  run_refused(
      [](Endpoint& end) {
        return end.request(IBV_WR_RDMA_WRITE_WITH_IMM, 0, 64, static_cast<std::uint32_t>(end.buffer.size()) - 32);
      },
      IBV_WC_REM_ACCESS_ERR, expect_taken);
}

TEST_F(Errors, WriteWithImmediateThatTheRegionForbidsTakesTheReceive) {
  EndpointOptions responder;
  responder.mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
  run_refused([](Endpoint& end) { return end.request(IBV_WR_RDMA_WRITE_WITH_IMM, 0, 64); }, IBV_WC_REM_ACCESS_ERR,
              expect_taken, responder);
}

// The first packet does not show that the message will consume a receive.
TEST_F(Errors, WriteWithImmediateOfManyPacketsIsRefusedAtItsFirst) {
  run_refused(
      [](Endpoint& end) {
        auto wr = end.request(IBV_WR_RDMA_WRITE_WITH_IMM, 0, 3000);
        wr.wr.rdma.rkey = kBadKey;
        return wr;
      },
      IBV_WC_REM_ACCESS_ERR, expect_told_by_event);
}

// The QP's own access flags cause an event, whether or not the device holds the receives.
class Forbidden : public Errors, public ::testing::WithParamInterface<bool> {};
TEST_P(Forbidden, WriteWithImmediateIsToldByTheEvent) {
  EndpointOptions responder;
  responder.qp_access = IBV_ACCESS_REMOTE_READ;
  run_refused([](Endpoint& end) { return end.request(IBV_WR_RDMA_WRITE_WITH_IMM, 0, 64); }, IBV_WC_REM_ACCESS_ERR,
              expect_told_by_event, responder, GetParam());
}
INSTANTIATE_TEST_SUITE_P(WithReceivesHeld, Forbidden, ::testing::Bool());

TEST_F(Errors, ReceiveTooSmallForALaterPacket) {
  run_refused([](Endpoint& end) { return end.request(IBV_WR_SEND, 0, 3000); }, IBV_WC_REM_INV_REQ_ERR,
              [](Endpoint& end) {
                expect_completions(end.cq, IBV_WC_LOC_LEN_ERR, 1, 1);
                expect_completions(end.cq, IBV_WC_WR_FLUSH_ERR, 2, 1);
                EXPECT_THAT(take_async_events(end.context), IsEmpty());
              });
}

// The third of five requests fails; the first two are complete and unsignalled.
TEST_F(Errors, TellEvenUnsignalledAndFlushBothQueuesInOrder) {
  EndpointOptions requester;
  requester.signal_all = false;
  run_connected(
      [&](Endpoint& end) {
        for (std::uint64_t id = 100; id < 104; ++id) ASSERT_EQ(end.receive(0, 64, id), 0);
        for (std::uint64_t id = 1; id <= 5; ++id) {
          auto wr = end.request(IBV_WR_RDMA_WRITE, 0, 64, 512);
          wr.wr_id = id;
          if (id == 3) wr.wr.rdma.rkey = kBadKey;
          ASSERT_EQ(end.post(wr), 0);
        }
        const auto wc = end.completion();
        EXPECT_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
        EXPECT_EQ(wc.wr_id, 3u);
        std::vector<std::uint64_t> sends, receives;
        while (const auto flushed = completion_soon(end.cq)) {
          EXPECT_EQ(flushed->status, IBV_WC_WR_FLUSH_ERR);
          EXPECT_EQ(flushed->qp_num, end.qp->qp_num);
          (flushed->wr_id < 100 ? sends : receives).push_back(flushed->wr_id);
        }
        EXPECT_THAT(sends, ElementsAre(4, 5));
        EXPECT_THAT(receives, ElementsAre(100, 101, 102, 103));
      },
      [](Endpoint&) {}, requester);
}

// A READ before the failing request completes with its data first.
TEST_F(Errors, WhatIsBeforeThemIsFinished) {
  run_connected(
      [&](Endpoint& end) {
        meet(0);
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_READ, 0, 20'000, 0)), 0);
        auto wr = end.request(IBV_WR_SEND, 0, 64);
        wr.sg_list->lkey = kBadKey;
        wr.wr_id = 1;
        ASSERT_EQ(end.post(wr), 0);
        expect_completions(end.cq, IBV_WC_SUCCESS, 0, 1);
        EXPECT_EQ(std::count(end.buffer.begin(), end.buffer.begin() + 20'000, 0x33), 20'000);
        expect_completions(end.cq, IBV_WC_LOC_PROT_ERR, 1, 1);
        meet(0);
      },
      [&](Endpoint& end) {
        std::fill_n(end.buffer.begin(), 20'000, 0x33);
        meet(1);
        meet(1);
        EXPECT_EQ(end.state(), IBV_QPS_RTS);
      });
}

// The responder's CQ has room for four CQEs: the fifth overflows it, and the sender gets no answer.
TEST_F(Errors, TheRespondersCqOverflows) {
  EndpointOptions requester, responder;
  requester.timeout = 3;
  requester.retry_count = 2;
  responder.cq_entries = 4;
  run_connected(
      [&](Endpoint& end) {
        meet(0);
        for (std::uint64_t id = 0; id < 4; ++id) {
          auto wr = end.request(IBV_WR_SEND, 0, 8);
          wr.wr_id = id;
          ASSERT_EQ(end.post(wr), 0);
        }
        expect_completions(end.cq, IBV_WC_SUCCESS, 0, 4);
        ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 8)), 0);
        pass(0, 10 * kMicrosecond);
        ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 8)), 0);
        auto last = end.completion();
        // the fifth message was complete, and may have been acknowledged
        if (last.status == IBV_WC_SUCCESS) last = end.completion();
        EXPECT_EQ(last.status, IBV_WC_RETRY_EXC_ERR);
        EXPECT_EQ(end.state(), IBV_QPS_ERR);
        meet(0);
      },
      [&](Endpoint& end) {
        never_wait(end.context->async_fd);
        for (std::uint64_t id = 0; id < 8; ++id) ASSERT_EQ(end.receive(0, 64, id), 0);
        meet(1);
        meet(1);
        EXPECT_EQ(end.state(), IBV_QPS_ERR);
        EXPECT_THAT(take_async_events(end.context), UnorderedElementsAre(IBV_EVENT_CQ_ERR, IBV_EVENT_QP_FATAL));
        expect_completions(end.cq, IBV_WC_SUCCESS, 0, 4);
        EXPECT_FALSE(completion_soon(end.cq, 10));
      },
      requester, responder);
}

// The requester's CQ overflows: its QP goes to ERR, and the peer notices nothing.
TEST_F(Errors, TheRequestersCqOverflows) {
  EndpointOptions requester;
  requester.cq_entries = 4;
  run_connected(
      [&](Endpoint& end) {
        never_wait(end.context->async_fd);
        for (int i = 0; i < 6; ++i) ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, 8)), 0);
        pass(0, 100 * kMicrosecond);
        EXPECT_THAT(take_async_events(end.context), UnorderedElementsAre(IBV_EVENT_CQ_ERR, IBV_EVENT_QP_FATAL));
        EXPECT_EQ(end.state(), IBV_QPS_ERR);
        meet(0);
      },
      [&](Endpoint& end) {
        never_wait(end.context->async_fd);
        meet(1);
        EXPECT_EQ(end.state(), IBV_QPS_RTS);
        EXPECT_THAT(take_async_events(end.context), IsEmpty());
      },
      requester);
}

}  // namespace
}  // namespace rnicsim::testing::rc_errors_test
