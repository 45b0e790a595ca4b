// Asynchronous events: which come, to whom, and that an object waits for its own to be acknowledged.
#include <gmock/gmock.h>
#include <poll.h>

#include "tests/verbs/rc_pair.h"

namespace rnicsim::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

constexpr std::uint32_t kBadKey = 0x00abcd00;

class AsyncEvents : public RcPair {};

TEST_F(AsyncEvents, TheFirstMessageEstablishesInReadyToReceive) {
  Exchange<EndpointAddress> addresses;
  run(
      [&] {
        Endpoint end;
        end.connect(addresses.swap(0, end.address()));
        meet(0);
        for (int i = 0; i < 2; ++i) {
          ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, 8)), 0);
          EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        }
        meet(0);
      },
      [&] {
        Endpoint end;
        never_wait(end.context->async_fd);
        const auto remote = addresses.swap(1, end.address());
        end.to_init();
        end.to_rtr(remote);
        EXPECT_THAT(take_async_events(end.context), ElementsAre());
        meet(1);
        meet(1);
        ibv_async_event event;
        ASSERT_EQ(ibv_get_async_event(end.context, &event), 0);
        EXPECT_EQ(event.event_type, IBV_EVENT_COMM_EST);
        EXPECT_EQ(event.element.qp, end.qp);
        ibv_ack_async_event(&event);
        EXPECT_THAT(take_async_events(end.context), ElementsAre());
        end.to_rts();
      });
}

TEST_F(AsyncEvents, NoneInReadyToSend) {
  run_connected(
      [&](Endpoint& end) {
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, 8)), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        meet(0);
      },
      [&](Endpoint& end) {
        never_wait(end.context->async_fd);
        meet(1);
        EXPECT_THAT(take_async_events(end.context), ElementsAre());
      });
}

TEST_F(AsyncEvents, EachContextSeesItsOwn) {
  run_connected(
      [&](Endpoint& end) {
        auto wr = end.request(IBV_WR_RDMA_WRITE, 0, 8);
        wr.wr.rdma.rkey = kBadKey;
        ASSERT_EQ(end.post(wr), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_REM_ACCESS_ERR);
        never_wait(end.context->async_fd);
        EXPECT_THAT(take_async_events(end.context), ElementsAre());
        meet(0);
      },
      [&](Endpoint& end) {
        Endpoint other;
        never_wait(other.context->async_fd);
        meet(1);
        pollfd entry{end.context->async_fd, POLLIN, 0};
        EXPECT_EQ(poll(&entry, 1, 0), 1);
        EXPECT_THAT(take_async_events(other.context), ElementsAre());
        ibv_async_event event;
        ASSERT_EQ(ibv_get_async_event(end.context, &event), 0);
        EXPECT_EQ(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
        EXPECT_EQ(event.element.qp, end.qp);
        ibv_ack_async_event(&event);
      });
}

// Such an error has no CQE: the event is all that the library hears.
TEST_F(AsyncEvents, ReceivesPostedAfterAnAccessErrorAreFlushed) {
  run_connected(
      [&](Endpoint& end) {
        auto wr = end.request(IBV_WR_RDMA_WRITE, 0, 8);
        wr.wr.rdma.rkey = kBadKey;
        ASSERT_EQ(end.post(wr), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_REM_ACCESS_ERR);
        meet(0);
      },
      [&](Endpoint& end) {
        ibv_async_event event;
        ASSERT_EQ(ibv_get_async_event(end.context, &event), 0);
        ASSERT_EQ(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
        ibv_ack_async_event(&event);
        meet(1);
        pass(1, Duration{20'000'000});
        ASSERT_EQ(end.receive(0, 64, 9), 0);
        expect_completions(end.cq, IBV_WC_WR_FLUSH_ERR, 9, 1);
      });
}

TEST_F(AsyncEvents, DestructionWaitsForAcknowledgements) {
  ibv_async_event event;
  Duration acknowledged{}, destroyed{};
  run_connected(
      [&](Endpoint& end) {
        auto wr = end.request(IBV_WR_RDMA_WRITE, 0, 8);
        wr.wr.rdma.rkey = kBadKey;
        ASSERT_EQ(end.post(wr), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_REM_ACCESS_ERR);
        meet(0);
        pass(0, Duration{300'000'000});
        EXPECT_EQ(destroyed, Duration{});
        acknowledged = now();
        ibv_ack_async_event(&event);
      },
      [&](Endpoint& end) {
        ASSERT_EQ(ibv_get_async_event(end.context, &event), 0);
        meet(1);
        EXPECT_EQ(ibv_destroy_qp(end.qp), 0);
        destroyed = now();
        end.qp = nullptr;
      });
  EXPECT_GE(destroyed, acknowledged);
  EXPECT_LT(destroyed, acknowledged + Duration{20'000'000});
}

TEST_F(AsyncEvents, AnUnreadEventGoesWithItsQueuePair) {
  run_connected(
      [&](Endpoint& end) {
        auto wr = end.request(IBV_WR_RDMA_WRITE, 0, 8);
        wr.wr.rdma.rkey = kBadKey;
        ASSERT_EQ(end.post(wr), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_REM_ACCESS_ERR);
        meet(0);
      },
      [&](Endpoint& end) {
        never_wait(end.context->async_fd);
        meet(1);
        EXPECT_EQ(ibv_destroy_qp(end.qp), 0);
        end.qp = nullptr;
        EXPECT_THAT(take_async_events(end.context), ElementsAre());
      });
}

class Overrun : public AsyncEvents {
 protected:
  // h0 has a CQ of four, and a fifth message comes in.
  void run_overrun(EndpointOptions options, std::function<void(Endpoint&)> afterwards) {
    options.cq_entries = 4;
    run_connected(
        [&](Endpoint& end) {
          never_wait(end.context->async_fd);
          ASSERT_EQ(end.cq->cqe, 4);
          for (std::uint64_t i = 0; i < 8; ++i) ASSERT_EQ(end.receive(0, 64, i), 0);
          meet(0);
          meet(0);
          afterwards(end);
        },
        [&](Endpoint& end) {
          meet(1);
          for (int i = 0; i < 6; ++i) ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 8)), 0);
          pass(1, Duration{200'000'000});
          meet(1);
        },
        options);
  }
};

TEST_F(Overrun, KillsTheQueueAndItsQueuePairs) {
  run_overrun({}, [](Endpoint& end) {
    ibv_async_event event;
    std::vector<ibv_event_type> types;
    while (ibv_get_async_event(end.context, &event) == 0) {
      types.push_back(event.event_type);
      if (event.event_type == IBV_EVENT_CQ_ERR) {
        EXPECT_EQ(event.element.cq, end.cq);
      }
      if (event.event_type == IBV_EVENT_QP_FATAL) {
        EXPECT_EQ(event.element.qp, end.qp);
      }
      ibv_ack_async_event(&event);
    }
    EXPECT_THAT(types, UnorderedElementsAre(IBV_EVENT_CQ_ERR, IBV_EVENT_QP_FATAL));
    EXPECT_EQ(end.state(), IBV_QPS_ERR);
    // What was written before stands.
    expect_completions(end.cq, IBV_WC_SUCCESS, 0, 4);
    EXPECT_FALSE(completion_soon(end.cq, 10));
  });
}

TEST_F(Overrun, PollingInTimePreventsIt) {
  EndpointOptions options;
  options.cq_entries = 4;
  run_connected(
      [&](Endpoint& end) {
        never_wait(end.context->async_fd);
        for (std::uint64_t i = 0; i < 32; ++i) {
          ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, 8)), 0);
          if (i % 4 != 3) continue;
          for (int j = 0; j < 4; ++j) EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        }
        EXPECT_THAT(take_async_events(end.context), ElementsAre());
      },
      [](Endpoint&) {}, options);
}

}  // namespace
}  // namespace rnicsim::testing
