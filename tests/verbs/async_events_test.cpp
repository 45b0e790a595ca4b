// SPDX-License-Identifier: Apache-2.0
// Asynchronous events: which events come, in which context, and destruction that waits for acknowledgements.
#include <gmock/gmock.h>
#include <poll.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "tests/verbs/rc_pair.h"

namespace rnicsim::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::SizeIs;
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

// Contexts of a process, opened one after the other, one of them imported; each has an object that fails.
TEST_F(AsyncEvents, AContextHearsOfItsObjectsWhicheverWasOpenedLast) {
  const auto fail = [](Endpoint& end) {
    ASSERT_EQ(move(end.qp, IBV_QPS_RESET), 0);
    end.connect(end.address());
    auto wr = end.request(IBV_WR_RDMA_WRITE, 0, 8);
    wr.wr.rdma.rkey = kBadKey;
    ASSERT_EQ(end.post(wr), 0);
    // fails as requester, or is flushed because the QP failed as responder
    EXPECT_NE(end.completion().status, IBV_WC_SUCCESS);
  };
  const auto readable = [](ibv_context* context) {
    pollfd entry{context->async_fd, POLLIN, 0};
    return poll(&entry, 1, 0) == 1;
  };
  run_alone([&](Endpoint& first) {
    auto second = std::make_unique<Endpoint>();
    ibv_context* imported = ibv_import_device(::dup(first.context->cmd_fd));
    ASSERT_NE(imported, nullptr);
    for (ibv_context* context : {first.context, second->context, imported}) never_wait(context->async_fd);
    fail(first);
    pass(0, kSettled);
    EXPECT_TRUE(readable(first.context));
    EXPECT_FALSE(readable(second->context));
    EXPECT_FALSE(readable(imported));
    EXPECT_THAT(take_async_events(first.context), ElementsAre(IBV_EVENT_QP_ACCESS_ERR));
    fail(*second);
    pass(0, kSettled);
    EXPECT_THAT(take_async_events(first.context), ElementsAre());
    EXPECT_THAT(take_async_events(second->context), ElementsAre(IBV_EVENT_QP_ACCESS_ERR));
    EXPECT_THAT(take_async_events(imported), ElementsAre());
    // The import's own objects, in a shared PD.
    ibv_cq* cq = ibv_create_cq(imported, 4, nullptr, nullptr, 0);
    ibv_pd* pd = ibv_import_pd(imported, first.pd->handle);
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = cq;
    wanted.cap = {1, 8, 1, 1, 0};
    wanted.qp_type = IBV_QPT_RC;
    ibv_qp* qp = ibv_create_qp(pd, &wanted);
    ASSERT_NE(qp, nullptr);
    ibv_qp* const own = std::exchange(first.qp, qp);
    first.to_init();
    for (int i = 0; i < 5; ++i) ASSERT_EQ(first.receive(0, 64), 0);
    ASSERT_EQ(move(qp, IBV_QPS_ERR), 0);  // five completions for a CQ of four entries
    pass(0, kSettled);
    EXPECT_THAT(take_async_events(imported), ElementsAre(IBV_EVENT_CQ_ERR));
    EXPECT_THAT(take_async_events(first.context), ElementsAre());
    first.qp = own;
    // The first context still gets events after the others are closed.
    EXPECT_EQ(ibv_close_device(imported), 0);
    second.reset();
    fail(first);
    pass(0, kSettled);
    EXPECT_THAT(take_async_events(first.context), ElementsAre(IBV_EVENT_QP_ACCESS_ERR));
  });
}

// This error has no CQE: the event is all that the library gets.
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
        pass(1, kSettled);
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

// Unread events: the list is unbounded, although the descriptor holds a bounded number.
TEST_F(AsyncEvents, ManyUnreadOnes) {
  run_alone([&](Endpoint& end) {
    never_wait(end.context->async_fd);
    end.connect(end.address());
    const auto drain = [](ibv_qp* qp) {
      ibv_qp_attr wanted{};
      wanted.qp_state = IBV_QPS_SQD;
      wanted.en_sqd_async_notify = 1;
      ASSERT_EQ(ibv_modify_qp(qp, &wanted, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
      ASSERT_EQ(move(qp, IBV_QPS_RTS), 0);
    };
    ibv_qp* other = std::exchange(end.qp, end.create_qp());
    end.connect(end.address());
    std::swap(other, end.qp);
    for (int i = 0; i < kManyEvents; ++i) drain(i % 3 != 2 ? end.qp : other);
    EXPECT_EQ(ibv_destroy_qp(other), 0);  // its events are discarded
    for (int i = 0; i < 5; ++i) drain(end.qp);
    pass(0, kSettled);
    const std::size_t left = kManyEvents - kManyEvents / 3 + 5;
    EXPECT_THAT(take_async_events(end.context), AllOf(SizeIs(left), Each(IBV_EVENT_SQ_DRAINED)));
    drain(end.qp);
    pass(0, kSettled);
    EXPECT_THAT(take_async_events(end.context), SizeIs(1));
  });
}

class Overrun : public AsyncEvents {
 protected:
  // h0 has a CQ of four entries, and a fifth message arrives.
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
    // CQEs written before are intact.
    expect_completions(end.cq, IBV_WC_SUCCESS, 0, 4);
    EXPECT_FALSE(completion_soon(end.cq, 10));
  });
}

// All queue pairs of the CQ fail, whatever they use it for; their work is flushed to their other CQ.
TEST_F(Overrun, KillsTheQueuePairsOfBothSides) {
  run_alone([](Endpoint& end) {
    never_wait(end.context->async_fd);
    ibv_cq* small = ibv_create_cq(end.context, 4, nullptr, nullptr, 0);
    ASSERT_NE(small, nullptr);
    const auto queue_pair = [&](ibv_cq* send, ibv_cq* receive) {
      ibv_qp_init_attr attributes{};
      attributes.send_cq = send;
      attributes.recv_cq = receive;
      attributes.cap = {1, 16, 1, 1, 0};
      attributes.qp_type = IBV_QPT_RC;
      return ibv_create_qp(end.pd, &attributes);
    };
    ibv_qp* flooding = queue_pair(end.cq, small);
    ibv_qp* sending = queue_pair(small, end.cq);
    ibv_qp* apart = end.qp;
    for (ibv_qp* qp : {flooding, sending, apart}) {
      end.qp = qp;
      ASSERT_NE(qp, nullptr);
      end.to_init();
      for (std::uint64_t i = 0; i < 6; ++i) ASSERT_EQ(end.receive(0, 64, i), 0);
    }
    end.qp = apart;
    ASSERT_EQ(move(flooding, IBV_QPS_ERR), 0);
    EXPECT_EQ(completion_soon(end.cq)->status, IBV_WC_WR_FLUSH_ERR);
    expect_completions(end.cq, IBV_WC_WR_FLUSH_ERR, 1, 5);  // of `sending`, in its other CQ
    EXPECT_FALSE(completion_soon(end.cq, 10));
    ibv_async_event event;
    std::vector<std::pair<ibv_event_type, void*>> events;
    while (ibv_get_async_event(end.context, &event) == 0) {
      events.emplace_back(event.event_type, event.element.qp);
      ibv_ack_async_event(&event);
    }
    EXPECT_THAT(events, ::testing::Contains(std::pair<ibv_event_type, void*>(IBV_EVENT_CQ_ERR, small)));
    EXPECT_THAT(events, ::testing::Contains(std::pair<ibv_event_type, void*>(IBV_EVENT_QP_FATAL, sending)));
    EXPECT_EQ(query(sending).qp_state, IBV_QPS_ERR);
    EXPECT_EQ(end.state(), IBV_QPS_INIT);
    // All objects can be destroyed, and a new CQ with the same number works.
    EXPECT_EQ(ibv_destroy_cq(small), EBUSY);
    EXPECT_EQ(ibv_destroy_qp(flooding), 0);
    EXPECT_EQ(ibv_destroy_qp(sending), 0);
    EXPECT_EQ(ibv_destroy_cq(small), 0);
    small = ibv_create_cq(end.context, 4, nullptr, nullptr, 0);
    ASSERT_NE(small, nullptr);
    ibv_qp* after = queue_pair(small, small);
    ASSERT_NE(after, nullptr);
    end.qp = after;
    end.to_init();
    for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(end.receive(0, 64, i), 0);
    ASSERT_EQ(move(after, IBV_QPS_ERR), 0);
    expect_completions(small, IBV_WC_WR_FLUSH_ERR, 0, 4);
    end.qp = apart;
    EXPECT_EQ(ibv_destroy_qp(after), 0);
    EXPECT_EQ(ibv_destroy_cq(small), 0);
  });
}

// The entries that the arm doorbell covers are not consumed yet.
TEST_F(Overrun, ArmingMakesNoRoom) {
  EndpointOptions options;
  options.cq_entries = 4;
  options.channel = true;
  run_connected(
      [&](Endpoint& end) {
        never_wait(end.context->async_fd);
        for (std::uint64_t i = 0; i < 8; ++i) ASSERT_EQ(end.receive(0, 64, i), 0);
        meet(0);
        meet(0);
        ASSERT_EQ(ibv_req_notify_cq(end.cq, 0), 0);
        meet(0);
        meet(0);
        EXPECT_THAT(take_async_events(end.context), UnorderedElementsAre(IBV_EVENT_CQ_ERR, IBV_EVENT_QP_FATAL));
        expect_completions(end.cq, IBV_WC_SUCCESS, 0, 4);
      },
      [&](Endpoint& end) {
        for (const int messages : {4, 2}) {
          meet(1);
          for (int i = 0; i < messages; ++i) ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 8)), 0);
          pass(1, Duration{200'000'000});
          meet(1);
        }
      },
      options);
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
