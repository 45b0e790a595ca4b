// SPDX-License-Identifier: Apache-2.0
// Each mistake ends in the status that the specification names, on both sides, and in no other status.
#include <fcntl.h>
#include <gmock/gmock.h>

#include "model/base/kernel.h"
#include "tests/support/endpoint.h"
#include "tests/support/two_hosts.h"

namespace rnicsim::testing {
namespace {

constexpr std::uint32_t kBadKey = 0x00abcd00;

class Statuses : public TwoHosts {
 protected:
  struct Outcome {
    ibv_wc_status requester;
    ibv_qp_state requester_state;
    ibv_qp_state responder_state;
    std::vector<ibv_wc_status> received;  // statuses of the CQEs at the responder
    std::vector<ibv_event_type> events;   // asynchronous events at the responder
    Duration took;
  };

  // h0 connects, makes `mistake`, and waits for its completion. h1 runs `prepare`, and collects completions and events.
  Outcome run_mistake(std::function<void(Endpoint&)> mistake, std::function<void(Endpoint&)> prepare = {}) {
    Outcome outcome{};
    Exchange<EndpointAddress> addresses;
    run(
        [&] {
          Endpoint end(options_);
          end.connect(addresses.swap(0, end.address()));
          meet(0);
          const auto start = now();
          mistake(end);
          outcome.requester = end.completion().status;
          outcome.took = now() - start;
          outcome.requester_state = end.state();
          meet(0);
        },
        [&] {
          Endpoint end(responder_options_);
          end.connect(addresses.swap(1, end.address()));
          if (prepare) prepare(end);
          meet(1);
          meet(1);
          outcome.responder_state = end.state();
          collect(end, outcome);
        });
    return outcome;
  }

  static void collect(Endpoint& end, Outcome& outcome) {
    ibv_wc wc;
    while (ibv_poll_cq(end.cq, 1, &wc) == 1) outcome.received.push_back(wc.status);
    fcntl(end.context->async_fd, F_SETFL, O_NONBLOCK);
    ibv_async_event event;
    while (ibv_get_async_event(end.context, &event) == 0) {
      if (event.event_type != IBV_EVENT_COMM_EST) outcome.events.push_back(event.event_type);
      ibv_ack_async_event(&event);
    }
  }

  static void expect_remote_access_error(const Outcome& outcome) {
    EXPECT_EQ(outcome.requester, IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(outcome.requester_state, IBV_QPS_ERR);
    EXPECT_EQ(outcome.responder_state, IBV_QPS_ERR);
    EXPECT_THAT(outcome.received, ::testing::IsEmpty());
    EXPECT_THAT(outcome.events, ::testing::ElementsAre(IBV_EVENT_QP_ACCESS_ERR));
  }
  static void expect_local_protection_error(const Outcome& outcome) {
    EXPECT_EQ(outcome.requester, IBV_WC_LOC_PROT_ERR);
    EXPECT_EQ(outcome.requester_state, IBV_QPS_ERR);
    EXPECT_EQ(outcome.responder_state, IBV_QPS_RTS);
    EXPECT_THAT(outcome.received, ::testing::IsEmpty());
    EXPECT_THAT(outcome.events, ::testing::IsEmpty());
  }

  EndpointOptions options_, responder_options_;
};

TEST_F(Statuses, SendFromABadLkey) {
  expect_local_protection_error(run_mistake([](Endpoint& end) {
    auto wr = end.request(IBV_WR_SEND, 0, 64);
    wr.sg_list->lkey = kBadKey;
    ASSERT_EQ(end.post(wr), 0);
  }));
}

TEST_F(Statuses, SendBeyondTheRegion) {
  expect_local_protection_error(run_mistake([](Endpoint& end) {
    ASSERT_EQ(end.post(end.request(IBV_WR_SEND, static_cast<std::uint32_t>(end.buffer.size()) - 32, 64)), 0);
  }));
}

TEST_F(Statuses, WriteToABadRkey) {
  expect_remote_access_error(run_mistake([](Endpoint& end) {
    auto wr = end.request(IBV_WR_RDMA_WRITE, 0, 64);
    wr.wr.rdma.rkey = kBadKey;
    ASSERT_EQ(end.post(wr), 0);
  }));
}

TEST_F(Statuses, WriteBeyondTheRegion) {
  expect_remote_access_error(run_mistake([](Endpoint& end) {
    ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, 64, static_cast<std::uint32_t>(end.buffer.size()) - 32)), 0);
  }));
}

TEST_F(Statuses, ReadFromABadRkey) {
  expect_remote_access_error(run_mistake([](Endpoint& end) {
    auto wr = end.request(IBV_WR_RDMA_READ, 0, 64);
    wr.wr.rdma.rkey = kBadKey;
    ASSERT_EQ(end.post(wr), 0);
  }));
}

TEST_F(Statuses, ReadIntoABadLkey) {
  const auto outcome = run_mistake([](Endpoint& end) {
    auto wr = end.request(IBV_WR_RDMA_READ, 0, 64);
    wr.sg_list->lkey = kBadKey;
    ASSERT_EQ(end.post(wr), 0);
  });
  EXPECT_EQ(outcome.requester, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(outcome.requester_state, IBV_QPS_ERR);
  EXPECT_EQ(outcome.responder_state, IBV_QPS_RTS);
}

TEST_F(Statuses, WriteWithBothKeysBad) {
  expect_local_protection_error(run_mistake([](Endpoint& end) {
    auto wr = end.request(IBV_WR_RDMA_WRITE, 0, 64);
    wr.sg_list->lkey = wr.wr.rdma.rkey = kBadKey;
    ASSERT_EQ(end.post(wr), 0);
  }));
}

TEST_F(Statuses, ReadWithBothKeysBad) {
  expect_remote_access_error(run_mistake([](Endpoint& end) {
    auto wr = end.request(IBV_WR_RDMA_READ, 0, 64);
    wr.sg_list->lkey = wr.wr.rdma.rkey = kBadKey;
    ASSERT_EQ(end.post(wr), 0);
  }));
}

TEST_F(Statuses, TheQueuePairForbidsTheOperation) {
  responder_options_.qp_access = IBV_ACCESS_REMOTE_READ;
  expect_remote_access_error(
      run_mistake([](Endpoint& end) { ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, 64)), 0); }));
}

TEST_F(Statuses, TheRegionForbidsTheOperation) {
  responder_options_.mr_access = IBV_ACCESS_LOCAL_WRITE;
  expect_remote_access_error(
      run_mistake([](Endpoint& end) { ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_READ, 0, 64)), 0); }));
}

TEST_F(Statuses, ReceiveTooSmall) {
  const auto outcome = run_mistake([](Endpoint& end) { ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 65)), 0); },
                                   [](Endpoint& end) { ASSERT_EQ(end.receive(0, 64), 0); });
  EXPECT_EQ(outcome.requester, IBV_WC_REM_INV_REQ_ERR);
  EXPECT_THAT(outcome.received, ::testing::ElementsAre(IBV_WC_LOC_LEN_ERR));
  EXPECT_EQ(outcome.responder_state, IBV_QPS_ERR);
}

TEST_F(Statuses, ReceiveIntoABadLkey) {
  const auto outcome = run_mistake([](Endpoint& end) { ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 64)), 0); },
                                   [](Endpoint& end) {
                                     ibv_sge sge{reinterpret_cast<std::uint64_t>(end.buffer.data()), 64, kBadKey};
                                     ibv_recv_wr wr{};
                                     wr.sg_list = &sge;
                                     wr.num_sge = 1;
                                     ibv_recv_wr* bad = nullptr;
                                     ASSERT_EQ(ibv_post_recv(end.qp, &wr, &bad), 0);
                                   });
  EXPECT_EQ(outcome.requester, IBV_WC_REM_OP_ERR);
  EXPECT_THAT(outcome.received, ::testing::ElementsAre(IBV_WC_LOC_PROT_ERR));
}

TEST_F(Statuses, NoReceivePosted) {
  options_.rnr_retry = 2;
  responder_options_.min_rnr_timer = 12;  // 0.64 ms
  const auto outcome = run_mistake([](Endpoint& end) { ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 64)), 0); });
  EXPECT_EQ(outcome.requester, IBV_WC_RNR_RETRY_EXC_ERR);
  EXPECT_EQ(outcome.responder_state, IBV_QPS_RTS);
  EXPECT_GE(outcome.took, 2 * Duration{640'000'000});
  EXPECT_LT(outcome.took, 3 * Duration{640'000'000});
}

TEST_F(Statuses, NobodyAnswers) {
  options_.timeout = 8;  // 1.05 ms
  options_.retry_count = 2;
  const auto outcome = run_mistake([](Endpoint& end) { ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, 64)), 0); },
                                   [](Endpoint& end) {
                                     ibv_qp_attr attributes{};
                                     attributes.qp_state = IBV_QPS_RESET;
                                     ASSERT_EQ(ibv_modify_qp(end.qp, &attributes, IBV_QP_STATE), 0);
                                   });
  EXPECT_EQ(outcome.requester, IBV_WC_RETRY_EXC_ERR);
  EXPECT_GE(outcome.took, 3 * Duration{1'048'576'000});
}

TEST_F(Statuses, ReadsWhereNoneAreAllowed) {
  responder_options_.max_rd_atomic = 0;
  const auto outcome = run_mistake([](Endpoint& end) { ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_READ, 0, 64)), 0); });
  EXPECT_EQ(outcome.requester, IBV_WC_REM_INV_REQ_ERR);
}

TEST_F(Statuses, AtomicsWhereNoneAreAllowed) {
  responder_options_.max_rd_atomic = 0;
  const auto outcome = run_mistake([](Endpoint& end) { ASSERT_EQ(end.post(end.fetch_add(0, 1)), 0); });
  EXPECT_EQ(outcome.requester, IBV_WC_REM_INV_REQ_ERR);
}

TEST_F(Statuses, ReadsThatTheRequesterHasNoResourcesFor) {
  options_.max_rd_atomic = 0;
  const auto outcome = run_mistake([](Endpoint& end) { ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_READ, 0, 64)), 0); });
  EXPECT_EQ(outcome.requester, IBV_WC_LOC_QP_OP_ERR);
  EXPECT_EQ(outcome.responder_state, IBV_QPS_RTS);
}

TEST_F(Statuses, AtomicOnAMisalignedAddress) {
  const auto outcome = run_mistake([](Endpoint& end) { ASSERT_EQ(end.post(end.fetch_add(0, 1, 4)), 0); });
  EXPECT_EQ(outcome.requester, IBV_WC_REM_INV_REQ_ERR);
  EXPECT_EQ(outcome.requester_state, IBV_QPS_ERR);
  EXPECT_EQ(outcome.responder_state, IBV_QPS_ERR);
  EXPECT_THAT(outcome.received, ::testing::IsEmpty());
  EXPECT_THAT(outcome.events, ::testing::ElementsAre(IBV_EVENT_QP_REQ_ERR));
}

TEST_F(Statuses, MisalignmentComesBeforeTheKeys) {
  const auto outcome = run_mistake([](Endpoint& end) {
    auto wr = end.compare_swap(0, 1, 2, 4);
    wr.wr.atomic.rkey = wr.sg_list->lkey = kBadKey;
    ASSERT_EQ(end.post(wr), 0);
  });
  EXPECT_EQ(outcome.requester, IBV_WC_REM_INV_REQ_ERR);
}

TEST_F(Statuses, AtomicAtABadRkey) {
  expect_remote_access_error(run_mistake([](Endpoint& end) {
    auto wr = end.fetch_add(0, 1);
    wr.wr.atomic.rkey = kBadKey;
    ASSERT_EQ(end.post(wr), 0);
  }));
}

TEST_F(Statuses, AtomicWithBothKeysBad) {
  expect_remote_access_error(run_mistake([](Endpoint& end) {
    auto wr = end.fetch_add(0, 1);
    wr.wr.atomic.rkey = wr.sg_list->lkey = kBadKey;
    ASSERT_EQ(end.post(wr), 0);
  }));
}

TEST_F(Statuses, AtomicBeyondTheRegion) {
  expect_remote_access_error(run_mistake([](Endpoint& end) {
    ASSERT_EQ(end.post(end.fetch_add(0, 1, static_cast<std::uint32_t>(end.buffer.size()))), 0);
  }));
}

TEST_F(Statuses, TheQueuePairForbidsAtomics) {
  responder_options_.qp_access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  expect_remote_access_error(run_mistake([](Endpoint& end) { ASSERT_EQ(end.post(end.fetch_add(0, 1)), 0); }));
}

TEST_F(Statuses, TheRegionForbidsAtomics) {
  responder_options_.mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  expect_remote_access_error(run_mistake([](Endpoint& end) { ASSERT_EQ(end.post(end.fetch_add(0, 1)), 0); }));
}

TEST_F(Statuses, AtomicResultIntoABadLkey) {
  const auto outcome = run_mistake([](Endpoint& end) {
    auto wr = end.fetch_add(0, 1);
    wr.sg_list->lkey = kBadKey;
    ASSERT_EQ(end.post(wr), 0);
  });
  EXPECT_EQ(outcome.requester, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(outcome.requester_state, IBV_QPS_ERR);
  EXPECT_EQ(outcome.responder_state, IBV_QPS_RTS);
}

TEST_F(Statuses, ReadIntoARegionWithoutLocalWrite) {
  options_.mr_access = 0;
  const auto outcome = run_mistake([](Endpoint& end) { ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_READ, 0, 64)), 0); });
  EXPECT_EQ(outcome.requester, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(outcome.responder_state, IBV_QPS_RTS);
}

class AtomicResult : public Statuses, public ::testing::WithParamInterface<std::uint32_t> {};

TEST_P(AtomicResult, IsEightBytes) {
  const auto outcome = run_mistake([](Endpoint& end) {
    auto wr = end.fetch_add(0, 1);
    wr.sg_list->length = GetParam();
    ASSERT_EQ(end.post(wr), 0);
  });
  EXPECT_EQ(outcome.requester, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(outcome.responder_state, IBV_QPS_RTS);
}
INSTANTIATE_TEST_SUITE_P(OfBytes, AtomicResult, ::testing::Values(0u, 4u, 16u));

TEST_F(Statuses, LocalInvalidateOfABadKey) {
  if (!invalidates()) GTEST_SKIP() << "nic.capabilities.invalidate";
  const auto outcome = run_mistake([](Endpoint& end) {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_LOCAL_INV;
    wr.invalidate_rkey = kBadKey;
    ASSERT_EQ(end.post(wr), 0);
  });
  EXPECT_EQ(outcome.requester, IBV_WC_MW_BIND_ERR);
  EXPECT_EQ(outcome.requester_state, IBV_QPS_ERR);
  EXPECT_EQ(outcome.responder_state, IBV_QPS_RTS);
}

TEST_F(Statuses, LocalInvalidateOfARegionsKey) {
  if (!invalidates()) GTEST_SKIP() << "nic.capabilities.invalidate";
  const auto outcome = run_mistake([](Endpoint& end) {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_LOCAL_INV;
    wr.invalidate_rkey = end.mr->rkey;
    ASSERT_EQ(end.post(wr), 0);
  });
  EXPECT_EQ(outcome.requester, IBV_WC_MW_BIND_ERR);
}

// An error of the responder alone: its receive completes with the error, no NAK is sent, and the requester gets no
// answer.
TEST_F(Statuses, SendWithInvalidateOfABadKey) {
  if (!invalidates()) GTEST_SKIP() << "nic.capabilities.invalidate";
  options_.timeout = 8;
  options_.retry_count = 1;
  const auto outcome = run_mistake(
      [](Endpoint& end) {
        auto wr = end.request(IBV_WR_SEND_WITH_INV, 0, 64);
        wr.invalidate_rkey = kBadKey;
        ASSERT_EQ(end.post(wr), 0);
      },
      [](Endpoint& end) { ASSERT_EQ(end.receive(0, 64), 0); });
  EXPECT_EQ(outcome.requester, IBV_WC_RETRY_EXC_ERR);
  EXPECT_THAT(outcome.received, ::testing::ElementsAre(IBV_WC_REM_INV_REQ_ERR));
  EXPECT_EQ(outcome.responder_state, IBV_QPS_ERR);
}

TEST_F(Statuses, TheRestIsFlushedInOrder) {
  options_.signal_all = false;
  run_mistake([](Endpoint& end) {
    auto bad = end.request(IBV_WR_SEND, 0, 64);
    bad.sg_list->lkey = kBadKey;
    bad.wr_id = 1;
    ASSERT_EQ(end.post(bad), 0);
    for (std::uint64_t id = 2; id < 5; ++id) {
      auto good = end.request(IBV_WR_RDMA_WRITE, 0, 64);
      good.wr_id = id;
      ASSERT_EQ(end.post(good), 0);
    }
    EXPECT_EQ(end.completion().status, IBV_WC_LOC_PROT_ERR);
    for (std::uint64_t id = 2; id < 4; ++id) {
      const auto wc = end.completion();
      EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
      EXPECT_EQ(wc.wr_id, id);
    }
  });
}

}  // namespace
}  // namespace rnicsim::testing
