// SPDX-License-Identifier: Apache-2.0
// Receives of a shared receive queue: use in order, and their fate when queue pairs fail or are destroyed.
#include <gmock/gmock.h>

#include "model/nic/nic.h"
#include "model/nic/nic_counters.h"
#include "sim/adapter.h"
#include "tests/support/qp_set.h"
#include "tests/verbs/shared_receive.h"

namespace rnicsim::testing {
namespace {

using ::testing::ElementsAre;

TEST_F(SharedReceive, ReceivesComeInOrderAndAreUsedAgain) {
  constexpr std::uint64_t kMessages = 200;
  run_connected(
      [&](Endpoint& end) {
        meet(0);
        send_messages(end, kMessages);
      },
      [&](Endpoint& end) {
        post_receives(end, 0, 7);
        meet(1);
        for (std::uint64_t id = 0; id < kMessages; ++id) {
          const auto wc = end.completion();
          ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
          ASSERT_EQ(wc.wr_id, id);
          ASSERT_EQ(wc.qp_num, end.qp->qp_num);
          ASSERT_EQ(wc.byte_len, 8u);
          post_receives(end, id + 7, 1);
        }
      },
      {}, shared(7));
}

TEST_F(SharedReceive, SeveralSegmentsOfAMessageOfSeveralPackets) {
  run_connected(
      [&](Endpoint& end) {
        for (std::uint32_t i = 0; i < 5000; ++i) end.buffer[i] = std::uint8_t(i * 7);
        meet(0);
        send_messages(end, 2, 5000);
      },
      [&](Endpoint& end) {
        for (std::uint64_t id = 0; id < 2; ++id) {
          const auto base = reinterpret_cast<std::uint64_t>(end.buffer.data()) + id * 16384;
          ibv_sge sges[] = {
              {base, 1000, end.mr->lkey}, {base + 2000, 3000, end.mr->lkey}, {base + 6000, 1000, end.mr->lkey}};
          ibv_recv_wr wr{};
          wr.wr_id = id;
          wr.sg_list = sges;
          wr.num_sge = 3;
          ibv_recv_wr* bad = nullptr;
          ASSERT_EQ(ibv_post_srq_recv(end.srq, &wr, &bad), 0);
        }
        meet(1);
        for (std::uint64_t id = 0; id < 2; ++id) {
          ASSERT_EQ(end.completion().wr_id, id);
          const auto* base = end.buffer.data() + id * 16384;
          for (std::uint32_t i = 0; i < 5000; ++i)
            ASSERT_EQ(base[i < 1000 ? i : i < 4000 ? i + 1000 : i + 2000], std::uint8_t(i * 7)) << i;
        }
      },
      {}, shared());
}

TEST_F(SharedReceive, ManyQueuePairsOnOne) {
  constexpr std::size_t kQps = 8;
  constexpr std::uint64_t kEach = 20;
  Exchange<std::vector<EndpointAddress>> addresses;
  run(
      [&] {
        Endpoint end({.cq_entries = 512});
        QpSet qps(end, kQps);
        qps.connect(addresses.swap(0, qps.addresses()));
        meet(0);
        for (std::uint64_t i = 0; i < kEach * kQps; ++i) {
          ASSERT_EQ(qps.post(i % kQps, end.request(IBV_WR_SEND, 0, 8)), 0);
          for (int k = 0; i % 32 == 31 && k < 32; ++k) ASSERT_EQ(end.completion().status, IBV_WC_SUCCESS);
        }
        meet(0);
      },
      [&] {
        Endpoint end({.cq_entries = 512, .shared_wr = 31});
        QpSet qps(end, kQps);
        qps.connect(addresses.swap(1, qps.addresses()));
        post_receives(end, 0, 31);
        meet(1);
        std::vector<std::uint64_t> of_qp(kQps), of_id(kEach * kQps + 64);
        for (std::uint64_t i = 0; i < kEach * kQps; ++i) {
          const auto wc = end.completion();
          ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
          ASSERT_LT(qps.index_of(wc.qp_num), kQps);
          ++of_qp[qps.index_of(wc.qp_num)];
          EXPECT_EQ(of_id[wc.wr_id]++, 0u) << "twice: " << wc.wr_id;
          post_receives(end, 31 + i, 1);
        }
        for (const auto count : of_qp) EXPECT_EQ(count, kEach);
        meet(1);
      });
}

TEST_F(SharedReceive, AnErrorFlushesNoneOfTheQueue) {
  Exchange<std::vector<EndpointAddress>> addresses;
  run(
      [&] {
        Endpoint end;
        QpSet qps(end, 2);
        qps.connect(addresses.swap(0, qps.addresses()));
        meet(0);
        meet(0);
        for (int i = 0; i < 4; ++i) {
          ASSERT_EQ(qps.post(1, end.request(IBV_WR_SEND, 0, 8)), 0);
          EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        }
        meet(0);
      },
      [&] {
        Endpoint end(shared());
        never_wait(end.context->async_fd);
        QpSet qps(end, 2);
        qps.connect(addresses.swap(1, qps.addresses()));
        post_receives(end, 0, 4);
        meet(1);
        ASSERT_EQ(move(qps[0], IBV_QPS_ERR), 0);
        ibv_async_event event;
        pass(1, Duration{50'000'000});
        ASSERT_EQ(ibv_get_async_event(end.context, &event), 0);
        EXPECT_EQ(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
        EXPECT_EQ(event.element.qp, qps[0]);
        ibv_ack_async_event(&event);
        ASSERT_EQ(move(qps[0], IBV_QPS_ERR), 0);
        EXPECT_THAT(events_soon(end, 1), ElementsAre()) << "once";
        EXPECT_FALSE(completion_soon(end.cq));
        meet(1);
        expect_completions(end.cq, IBV_WC_SUCCESS, 0, 4);
        meet(1);
      });
}

// Unpolled completions are discarded with their QP; their entries become free.
TEST_F(SharedReceive, CompletionsOfADestroyedQueuePairFreeTheirEntries) {
  run_connected(
      [&](Endpoint& end) {
        meet(0);
        send_messages(end, 5);
        meet(0);
      },
      [&](Endpoint& end) {
        post_receives(end, 0, 7);
        meet(1);
        meet(1);
        pass(1, Duration{50'000'000});
        ASSERT_EQ(move(end.qp, IBV_QPS_RESET), 0);
        EXPECT_FALSE(completion_soon(end.cq));
        EXPECT_EQ(room(end), 5);
      },
      {}, shared(7));
}

TEST_F(SharedReceive, AReceiveThatIsTooShort) {
  run_connected(
      [&](Endpoint& end) {
        meet(0);
        ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 100)), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_REM_INV_REQ_ERR);
        meet(0);
      },
      [&](Endpoint& end) {
        never_wait(end.context->async_fd);
        post_receives(end, 3, 3);
        meet(1);
        const auto wc = end.completion();
        EXPECT_EQ(wc.status, IBV_WC_LOC_LEN_ERR);
        EXPECT_EQ(wc.wr_id, 3u);
        meet(1);
        EXPECT_FALSE(completion_soon(end.cq));
        EXPECT_THAT(events_soon(end, 1), ElementsAre(IBV_EVENT_QP_LAST_WQE_REACHED));
        EXPECT_EQ(room(end), 13);
      },
      {}, shared());
}

TEST_F(SharedReceive, AWriteWithImmediateTakesOne) {
  run_connected(
      [&](Endpoint& end) {
        meet(0);
        auto wr = end.request(IBV_WR_RDMA_WRITE_WITH_IMM, 0, 4000, 8192);
        wr.imm_data = 77;
        ASSERT_EQ(end.post(wr), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
      },
      [&](Endpoint& end) {
        post_receives(end, 6, 1);
        meet(1);
        const auto wc = end.completion();
        EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
        EXPECT_EQ(wc.wr_id, 6u);
        EXPECT_EQ(wc.imm_data, 77u);
        EXPECT_EQ(wc.byte_len, 4000u);
      },
      {}, shared());
}

TEST_F(SharedReceive, WithItsPayloadInTheCompletion) {
  auto options = shared();
  options.inline_receive = 32;
  run_connected(
      [&](Endpoint& end) {
        for (std::uint8_t i = 0; i < 32; ++i) end.buffer[i] = std::uint8_t(200 - i);
        meet(0);
        send_messages(end, 3, 32);
        meet(0);
      },
      [&](Endpoint& end) {
        post_receives(end, 0, 3);
        meet(1);
        expect_completions(end.cq, IBV_WC_SUCCESS, 0, 3);
        for (std::uint32_t i = 0; i < 96; ++i)
          ASSERT_EQ(end.buffer[i / 32 * kSlot + i % 32], std::uint8_t(200 - i % 32));
        meet(1);
      },
      {}, options);
  EXPECT_EQ(host(1).nic().counters().completion.inline_cqes, 3u);
}

TEST_F(SharedReceive, ThreadsPostTogether) {
  constexpr std::size_t kThreads = 4;
  constexpr std::uint64_t kEach = 50;
  run_connected(
      [&](Endpoint& end) {
        run_threads(kThreads, [&](std::size_t thread) {
          for (std::uint64_t i = 0; i < kEach; ++i) {
            ASSERT_EQ(end.receive(0, kSlot, thread * kEach + i), 0);
          }
        });
        meet(0);
        std::vector<int> seen(kThreads * kEach);
        std::vector<std::uint64_t> next(kThreads);
        for (std::size_t i = 0; i < seen.size(); ++i) {
          const auto id = end.completion().wr_id;
          ASSERT_LT(id, seen.size());
          EXPECT_EQ(seen[id]++, 0);
          EXPECT_EQ(id % kEach, next[id / kEach]++) << "a thread's own stay in order";
        }
      },
      [&](Endpoint& end) {
        meet(1);
        send_messages(end, kThreads * kEach);
      },
      shared(255));
}

TEST_F(SharedReceive, AnEmptyOneIsNotReady) {
  run_connected(
      [&](Endpoint& end) {
        ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 8)), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        meet(0);
        ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 8)), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_RNR_RETRY_EXC_ERR);
        meet(0);
      },
      [&](Endpoint& end) {
        pass(1, Duration{60'000'000});
        EXPECT_FALSE(completion_soon(end.cq));
        post_receives(end, 5, 1);
        EXPECT_EQ(end.completion().wr_id, 5u);
        meet(1);
        meet(1);
        EXPECT_EQ(room(end), 15);
      },
      {.rnr_retry = 6}, {.shared_wr = 15, .min_rnr_timer = 8});
  const auto counters = host(0).nic().counters().engine;
  EXPECT_GT(counters.rnr_nak_retry_err, 6u);
  EXPECT_EQ(host(1).nic().counters().engine.out_of_buffer, counters.rnr_nak_retry_err + 1) << "the last ends it";
}

// A middle packet is lost, and the requester waits: the receive is partly filled.
class HalfFilled : public SharedReceive {
 protected:
  HalfFilled() : SharedReceive({}, {"drop,host=h0,opcode=SEND_MIDDLE,nth=2-"}) {}
  std::vector<std::uint64_t> expected_;  // wr_ids of the messages to the other QP

  // `ends` ends the receiver's QP; then another QP of the same SRQ gets messages.
  void run_half_filled(const std::function<void(Endpoint&, ibv_qp*)>& ends, std::uint64_t messages) {
    Exchange<std::vector<EndpointAddress>> addresses;
    run(
        [&] {
          Endpoint end({.retry_count = 0});
          QpSet qps(end, 2);
          qps.connect(addresses.swap(0, qps.addresses()));
          meet(0);
          ASSERT_EQ(qps.post(0, end.request(IBV_WR_SEND, 0, 5000)), 0);
          EXPECT_EQ(end.completion().status, IBV_WC_RETRY_EXC_ERR);
          meet(0);
          meet(0);
          for (std::uint64_t i = 0; i < messages; ++i) {
            ASSERT_EQ(qps.post(1, end.request(IBV_WR_SEND, 0, 8)), 0);
            EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
          }
          meet(0);
        },
        [&] {
          Endpoint end(shared());
          never_wait(end.context->async_fd);
          QpSet qps(end, 2);
          qps.connect(addresses.swap(1, qps.addresses()));
          for (std::uint64_t id = 0; id < 3; ++id) ASSERT_EQ(end.receive(0, 8192, id), 0);
          meet(1);
          meet(1);
          ends(end, qps[0]);
          meet(1);
          meet(1);
          for (const auto id : expected_) EXPECT_EQ(end.completion().wr_id, id);
          EXPECT_EQ(room(end), 15);
        });
  }
};

TEST_F(HalfFilled, CompletesInTheErrorStateAndNoOtherDoes) {
  run_half_filled(
      [&](Endpoint& end, ibv_qp* qp) {
        ASSERT_EQ(move(qp, IBV_QPS_ERR), 0);
        expect_completions(end.cq, IBV_WC_WR_FLUSH_ERR, 0, 1);
        EXPECT_THAT(events_soon(end, 1), ElementsAre(IBV_EVENT_QP_LAST_WQE_REACHED));
        EXPECT_FALSE(completion_soon(end.cq));
        post_receives(end, 3, 1);
        expected_ = {1, 2, 3};
      },
      3);
}

TEST_F(HalfFilled, GoesBackWhenItsQueuePairIsReset) {
  run_half_filled(
      [&](Endpoint& end, ibv_qp* qp) {
        ASSERT_EQ(move(qp, IBV_QPS_RESET), 0);
        EXPECT_FALSE(completion_soon(end.cq));
        expected_ = {0, 1, 2};
      },
      3);
}

}  // namespace
}  // namespace rnicsim::testing
