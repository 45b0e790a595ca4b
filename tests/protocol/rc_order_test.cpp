// SPDX-License-Identifier: Apache-2.0
// Limits of requests in flight, and the effect of state changes on them.
#include <gmock/gmock.h>

#include <cstring>

#include "tests/protocol/rc_wire.h"

namespace rnicsim::testing::rc_order_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Duration kMicrosecond{1'000'000};

class InFlight : public RcWire {
 protected:
  explicit InFlight(const std::vector<std::string>& faults = {}) : RcWire(faults) {}

  // Most READs and atomics outstanding at once, as h0's port sees them: from the request's last bit to the last bit of
  // its response.
  std::uint32_t most_open() const {
    struct Change {
      Duration at;
      int by;
    };
    std::vector<Change> changes;
    for (const auto& packet : requests())
      if (opens(packet)) changes.push_back({packet.at, 1});
    for (const auto& packet : answers())
      if (roce::info(packet.opcode()).ends() && packet.opcode() != roce::Opcode::acknowledge)
        changes.push_back({packet.at + kCable, -1});
    std::ranges::stable_sort(changes, {}, [](const Change& change) { return change.at.ps; });
    int open = 0, most = 0;
    for (const auto& change : changes) most = std::max(most, open += change.by);
    EXPECT_EQ(open, 0);
    return static_cast<std::uint32_t>(most);
  }
  static bool opens(const WirePacket& packet) {
    const auto operation = roce::info(packet.opcode()).operation;
    return operation == roce::Operation::read || operation == roce::Operation::atomic;
  }

 private:
  static constexpr Duration kCable{90'000};
};

class RdAtomicLimit : public InFlight, public ::testing::WithParamInterface<std::tuple<std::uint8_t, int>> {};

TEST_P(RdAtomicLimit, IsReachedAndNeverPassed) {
  const auto [limit, kind] = GetParam();
  constexpr int kMessages = 20;
  EndpointOptions requester;
  requester.max_rd_atomic = limit;
  run_connected(
      [&, kind = kind](Endpoint& end) {
        for (std::uint32_t i = 0; i < kMessages; ++i) {
          const bool read = kind == 0 || (kind == 2 && i % 2 == 0);
          ASSERT_EQ(end.post(read ? end.request(IBV_WR_RDMA_READ, 16'384, 6000, 8192) : end.fetch_add(8 * i, 1)), 0);
          // WRITEs do not count; they wait for their turn only.
          ASSERT_EQ(i % 5 == 0 ? end.post(end.request(IBV_WR_RDMA_WRITE, 0, 8, 4096)) : 0, 0);
        }
        for (int i = 0; i < kMessages + 4; ++i) EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
      },
      [](Endpoint&) {}, requester);
  EXPECT_EQ(most_open(), limit);
}
INSTANTIATE_TEST_SUITE_P(Of, RdAtomicLimit, ::testing::Combine(::testing::Values(1, 2, 3, 16), ::testing::Range(0, 3)));

// A lost request or response does not occupy the limit for ever.
class LimitUnderLoss : public InFlight {
 protected:
  LimitUnderLoss() : InFlight({"drop,host=h1,nth=1+7+13"}) {}
};
TEST_F(LimitUnderLoss, LeavesRoomForWhatIsAskedAgain) {
  EndpointOptions requester;
  requester.max_rd_atomic = 2;
  requester.timeout = 8;
  run_connected(
      [&](Endpoint& end) {
        for (int i = 0; i < 12; ++i) ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_READ, 16'384, 2500, 8192)), 0);
        for (int i = 0; i < 12; ++i) EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
      },
      [](Endpoint&) {}, requester);
}

class Fence : public InFlight {
 protected:
  explicit Fence(const std::vector<std::string>& faults = {}) : InFlight(faults) {}

  static constexpr std::uint32_t kBytes = 20'000;

  // A READ, then a WRITE of the data that the READ brings; the same with an atomic. True: each WRITE sent the new data.
  bool writes_wait(bool fence) {
    EndpointOptions options;
    options.timeout = 8;
    bool right = true;
    run_connected(
        [&](Endpoint& end) {
          meet(0);
          ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_READ, 0, kBytes, 0)), 0);
          auto write = end.request(IBV_WR_RDMA_WRITE, 0, kBytes, 32'768);
          write.send_flags = fence ? unsigned{IBV_SEND_FENCE} : 0u;
          ASSERT_EQ(end.post(write), 0);
          ASSERT_EQ(end.post(end.fetch_add(24'000, 1, 24'000)), 0);
          auto original = end.request(IBV_WR_RDMA_WRITE, 24'000, 8, 60'000);
          original.send_flags = fence ? unsigned{IBV_SEND_FENCE} : 0u;
          ASSERT_EQ(end.post(original), 0);
          for (int i = 0; i < 4; ++i) EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
          meet(0);
        },
        [&](Endpoint& end) {
          std::fill_n(end.buffer.begin(), kBytes, 0x77);
          end.buffer[24'000] = 0x55;
          meet(1);
          meet(1);
          right = std::count(end.buffer.begin() + 32'768, end.buffer.begin() + 32'768 + kBytes, 0x77) == kBytes &&
                  end.buffer[60'000] == 0x55;
        },
        options, options);
    return right;
  }
};

TEST_F(Fence, WaitsForTheDataOfReadsAndAtomics) {
  EXPECT_TRUE(writes_wait(true));
  // On the wire, too: each WRITE follows the last response, both times.
  std::uint32_t open = 0;
  auto packets = sent();
  for (const auto& packet : packets) {
    if (opens(packet)) ++open;
    if (!packet.request() && packet.opcode() != roce::Opcode::acknowledge && roce::info(packet.opcode()).ends()) --open;
    if (packet.request() && roce::info(packet.opcode()).operation == roce::Operation::write) {
      EXPECT_EQ(open, 0u);
    }
  }
}

TEST_F(Fence, NothingWaitsWithoutIt) { EXPECT_FALSE(writes_wait(false)); }

class FenceUnderLoss : public Fence {
 protected:
  FenceUnderLoss() : Fence({"drop,host=h1,opcode=READ_RESPONSE_LAST,nth=1", "drop,opcode=ATOMIC_ACKNOWLEDGE,nth=1"}) {}
};
TEST_F(FenceUnderLoss, WaitsForWhatIsLostToo) { EXPECT_TRUE(writes_wait(true)); }

// SQD: started work finishes, whatever is lost.
class Drain : public RcWire {
 protected:
  explicit Drain(const std::vector<std::string>& faults = {}) : RcWire(faults) {}

  static int drain(Endpoint& end, bool notify) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_SQD;
    attributes.en_sqd_async_notify = notify;
    return ibv_modify_qp(end.qp, &attributes, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
  }
  // `operation` has left and one of its packets is lost. It still finishes; then the queue is drained. WRs posted
  // meanwhile wait.
  void run_lossy(ibv_wr_opcode operation, std::uint32_t bytes) {
    EndpointOptions requester;
    requester.timeout = 8;
    run_connected(
        [&](Endpoint& end) {
          never_wait(end.context->async_fd);
          auto wr =
              operation == IBV_WR_ATOMIC_FETCH_AND_ADD ? end.fetch_add(0, 1) : end.request(operation, 0, bytes, 8192);
          wr.wr_id = 1;
          ASSERT_EQ(end.post(wr), 0);
          await_requests(0, 1);
          pass(0, 10 * kMicrosecond);
          ASSERT_EQ(drain(end, true), 0);
          auto later = end.request(IBV_WR_RDMA_WRITE, 0, 8, 30'000);
          later.wr_id = 2;
          ASSERT_EQ(end.post(later), 0);
          EXPECT_EQ(query(end.qp).sq_draining, 1);
          EXPECT_EQ(move(end.qp, IBV_QPS_RTS), EINVAL);
          EXPECT_THAT(take_async_events(end.context), IsEmpty());
          expect_completions(end.cq, 1);
          pass(0, 20 * kMicrosecond);
          EXPECT_THAT(take_async_events(end.context), ElementsAre(IBV_EVENT_SQ_DRAINED));
          EXPECT_EQ(query(end.qp).sq_draining, 0);
          EXPECT_FALSE(completion_soon(end.cq));
          ASSERT_EQ(move(end.qp, IBV_QPS_RTS), 0);
          expect_completions(end.cq, 2);
        },
        [&](Endpoint& end) { ASSERT_EQ(end.receive(0, bytes), 0); }, requester);
  }
  static void expect_completions(ibv_cq* cq, std::uint64_t id) {
    const auto wc = completion_soon(cq, 5000);
    ASSERT_TRUE(wc) << "none for " << id;
    EXPECT_EQ(wc->status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc->wr_id, id);
  }
};

class DrainWhatWasLost : public Drain, public ::testing::WithParamInterface<std::pair<ibv_wr_opcode, std::uint32_t>> {
 protected:
  DrainWhatWasLost() : Drain({"drop,host=h0,nth=1"}) {}
};
TEST_P(DrainWhatWasLost, FinishesIt) { run_lossy(GetParam().first, GetParam().second); }
INSTANTIATE_TEST_SUITE_P(Request, DrainWhatWasLost,
                         ::testing::Values(std::pair{IBV_WR_SEND, 64u}, std::pair{IBV_WR_RDMA_WRITE, 500u},
                                           std::pair{IBV_WR_RDMA_READ, 5000u},
                                           std::pair{IBV_WR_ATOMIC_FETCH_AND_ADD, 8u}));

class DrainWhatWasNotAnswered : public Drain,
                                public ::testing::WithParamInterface<std::pair<ibv_wr_opcode, std::uint32_t>> {
 protected:
  DrainWhatWasNotAnswered()
      : Drain({"drop,host=h1,opcode=ACKNOWLEDGE+READ_RESPONSE_LAST+ATOMIC_ACKNOWLEDGE,count=1"}) {}
};
TEST_P(DrainWhatWasNotAnswered, FinishesIt) { run_lossy(GetParam().first, GetParam().second); }
INSTANTIATE_TEST_SUITE_P(Request, DrainWhatWasNotAnswered,
                         ::testing::Values(std::pair{IBV_WR_SEND, 64u}, std::pair{IBV_WR_RDMA_WRITE, 5000u},
                                           std::pair{IBV_WR_RDMA_READ, 5000u},
                                           std::pair{IBV_WR_ATOMIC_FETCH_AND_ADD, 8u}));

TEST_F(Drain, FinishesWhatFindsNoReceive) {
  run_connected(
      [&](Endpoint& end) {
        never_wait(end.context->async_fd);
        ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 64)), 0);
        await_requests(0, 3);
        ASSERT_EQ(drain(end, true), 0);
        EXPECT_EQ(query(end.qp).sq_draining, 1);
        meet(0);
        expect_completions(end.cq, 0);
        pass(0, 20 * kMicrosecond);
        EXPECT_THAT(take_async_events(end.context), ElementsAre(IBV_EVENT_SQ_DRAINED));
      },
      [&](Endpoint& end) {
        meet(1);
        ASSERT_EQ(end.receive(0, 64), 0);
      });
}

TEST_F(Drain, TellsOnlyWhoAsksEachTime) {
  run_connected(
      [&](Endpoint& end) {
        never_wait(end.context->async_fd);
        ASSERT_EQ(drain(end, true), 0);
        pass(0, 50 * kMicrosecond);
        EXPECT_THAT(take_async_events(end.context), ElementsAre(IBV_EVENT_SQ_DRAINED));
        ASSERT_EQ(move(end.qp, IBV_QPS_RTS), 0);
        ASSERT_EQ(move(end.qp, IBV_QPS_SQD), 0);
        pass(0, 50 * kMicrosecond);
        EXPECT_THAT(take_async_events(end.context), IsEmpty());
        ASSERT_EQ(move(end.qp, IBV_QPS_RTS), 0);
        ASSERT_EQ(drain(end, false), 0);
        pass(0, 50 * kMicrosecond);
        EXPECT_THAT(take_async_events(end.context), IsEmpty());
      },
      [](Endpoint&) {});
}

// A WR posted in SQD is queued, not processed: it does not complete before RTS, not even with an error.
TEST_F(Drain, ChecksNothingThatHasNotBegun) {
  run_connected(
      [&](Endpoint& end) {
        ASSERT_EQ(move(end.qp, IBV_QPS_SQD), 0);
        auto wr = end.request(IBV_WR_RDMA_WRITE, 0, 0);
        ibv_sge parts[3];
        for (auto& part : parts) part = {wr.sg_list->addr, 1u << 30, wr.sg_list->lkey};
        wr.sg_list = parts, wr.num_sge = 3;  // longer than any message
        ASSERT_EQ(end.post(wr), 0);
        EXPECT_FALSE(completion_soon(end.cq));
        EXPECT_EQ(end.state(), IBV_QPS_SQD);
        ASSERT_EQ(move(end.qp, IBV_QPS_RTS), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_LOC_LEN_ERR);
      },
      [](Endpoint&) {});
}

// READs without resources (max_rd_atomic 0): they do not wait for other requests.
class DrainWithoutResources : public Drain {
 protected:
  explicit DrainWithoutResources(const std::vector<std::string>& faults = {}) : Drain(faults) {}

  static int take_resources(Endpoint& end) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_SQD;
    attributes.max_rd_atomic = 0;
    return ibv_modify_qp(end.qp, &attributes, IBV_QP_STATE | IBV_QP_MAX_QP_RD_ATOMIC);
  }
};
TEST_F(DrainWithoutResources, AReadThatWaitedFails) {
  run_connected(
      [&](Endpoint& end) {
        ASSERT_EQ(move(end.qp, IBV_QPS_SQD), 0);
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_READ, 0, 64)), 0);
        pass(0, 20 * kMicrosecond);
        ASSERT_EQ(take_resources(end), 0);
        EXPECT_FALSE(completion_soon(end.cq));
        ASSERT_EQ(move(end.qp, IBV_QPS_RTS), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_LOC_QP_OP_ERR);
      },
      [](Endpoint&) {});
}

class LostWithoutResources : public DrainWithoutResources {
 protected:
  LostWithoutResources() : DrainWithoutResources({"drop,host=h0,nth=1"}) {}
};
TEST_F(LostWithoutResources, AReadThatWasLostFails) {
  EndpointOptions requester;
  requester.timeout = 8;
  run_connected(
      [&](Endpoint& end) {
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_READ, 0, 64)), 0);
        await_requests(0, 1);
        ASSERT_EQ(move(end.qp, IBV_QPS_SQD), 0);
        ASSERT_EQ(take_resources(end), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_LOC_QP_OP_ERR);
      },
      [](Endpoint&) {}, requester);
}

// The responder side of a drained queue continues.
TEST_F(Drain, StopsNobodyElse) {
  run_connected(
      [&](Endpoint& end) {
        ASSERT_EQ(end.receive(0, 64), 0);
        ASSERT_EQ(move(end.qp, IBV_QPS_SQD), 0);
        meet(0);
        meet(0);
        EXPECT_EQ(end.completion().opcode, IBV_WC_RECV);
      },
      [&](Endpoint& end) {
        meet(1);
        ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 64)), 0);
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_READ, 0, 3000)), 0);
        ASSERT_EQ(end.post(end.fetch_add(0, 1)), 0);
        for (int i = 0; i < 3; ++i) EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        meet(1);
      });
}

// From SQD to ERR: all unfinished work is flushed.
class DrainToError : public Drain {
 protected:
  DrainToError() : Drain({"drop,host=h1"}) {}
};
TEST_F(DrainToError, MayBeLeftAtOnce) {
  run_connected(
      [&](Endpoint& end) {
        for (std::uint64_t id = 0; id < 3; ++id) {
          auto wr = end.request(IBV_WR_RDMA_WRITE, 0, 8);
          wr.wr_id = id;
          ASSERT_EQ(end.post(wr), 0);
        }
        await_requests(0, 3);
        ASSERT_EQ(drain(end, false), 0);
        ASSERT_EQ(move(end.qp, IBV_QPS_ERR), 0);
        RcPair::expect_completions(end.cq, IBV_WC_WR_FLUSH_ERR, 0, 3);
      },
      [](Endpoint&) {});
}

}  // namespace
}  // namespace rnicsim::testing::rc_order_test
