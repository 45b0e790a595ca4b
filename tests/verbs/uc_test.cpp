// SPDX-License-Identifier: Apache-2.0
// UC: messages that arrive, messages that are lost silently, and the effect of failed sends on the queue pair.
#include <cstring>

#include "tests/verbs/rc_pair.h"

namespace rnicsim::testing {
namespace {

class Uc : public RcPair {
 protected:
  using RcPair::RcPair;

  static EndpointOptions uc() {
    EndpointOptions options;
    options.type = IBV_QPT_UC;
    return options;
  }
  void run_uc(Body on_h0, Body on_h1) { run_connected(std::move(on_h0), std::move(on_h1), uc(), uc()); }
};

struct Case {
  const char* name;
  ibv_wr_opcode opcode;
  std::uint32_t length;
  bool receives;
  ibv_wc_opcode received;
};

class UcMessages : public Uc, public ::testing::WithParamInterface<Case> {};

TEST_P(UcMessages, Arrive) {
  const auto& [name, opcode, length, receives, received] = GetParam();
  run_uc(
      [&](Endpoint& end) {
        fill(end);
        meet(0);
        auto wr = end.request(opcode, 0, length, 64);
        wr.imm_data = 0x11223344;
        ASSERT_EQ(end.post(wr), 0);
        const auto wc = end.completion();
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        pass(0, kSettled);
        meet(0);
      },
      [&](Endpoint& end) {
        ASSERT_EQ(end.receive(64, 8192, 9), 0);
        meet(1);
        meet(1);
        const auto wc = completion_soon(end.cq, 2);
        ASSERT_EQ(wc.has_value(), receives);
        if (wc) {
          EXPECT_EQ(wc->status, IBV_WC_SUCCESS);
          EXPECT_EQ(wc->opcode, received);
          EXPECT_EQ(wc->byte_len, length);
          EXPECT_EQ(wc->wr_id, 9u);
          EXPECT_EQ(wc->wc_flags & IBV_WC_WITH_IMM, opcode == IBV_WR_SEND ? 0u : unsigned(IBV_WC_WITH_IMM));
          if (wc->wc_flags & IBV_WC_WITH_IMM) {
            EXPECT_EQ(wc->imm_data, 0x11223344u);
          }
        }
        EXPECT_TRUE(filled(end, 64, length));
      });
}

INSTANTIATE_TEST_SUITE_P(All, UcMessages,
                         ::testing::Values(Case{"send", IBV_WR_SEND, 100, true, IBV_WC_RECV},
                                           Case{"send_empty", IBV_WR_SEND, 0, true, IBV_WC_RECV},
                                           Case{"send_long", IBV_WR_SEND, 5000, true, IBV_WC_RECV},
                                           Case{"send_imm", IBV_WR_SEND_WITH_IMM, 2048, true, IBV_WC_RECV},
                                           Case{"write", IBV_WR_RDMA_WRITE, 7777, false, IBV_WC_RECV},
                                           Case{"write_imm", IBV_WR_RDMA_WRITE_WITH_IMM, 3000, true,
                                                IBV_WC_RECV_RDMA_WITH_IMM}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(Uc, HasNoAnswers) {
  run_uc([&](Endpoint& end) { send(end, 100); }, [&](Endpoint& end) { ASSERT_EQ(end.receive(0, 100), 0); });
  for (const auto& frame : wire()) EXPECT_EQ(frame.from, 0u);
}

TEST_F(Uc, TheOperationsOfOthersCompleteInError) {
  run_uc(
      [&](Endpoint& end) {
        for (const auto opcode : {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP,
                                  IBV_WR_SEND_WITH_INV, IBV_WR_TSO}) {
          SCOPED_TRACE(opcode);
          complete(end, end.request(opcode, 0, 8), IBV_WC_LOC_QP_OP_ERR);
          EXPECT_EQ(end.state(), IBV_QPS_SQE);
          ASSERT_EQ(move(end.qp, IBV_QPS_RTS), 0);
        }
        EXPECT_EQ(end.post(end.request(IBV_WR_DRIVER1, 0, 8)), EINVAL);
        send(end, 8);
      },
      [](Endpoint&) {});
}

TEST_F(Uc, AMessageWithoutAReceiveIsLost) {
  run_uc(
      [&](Endpoint& end) {
        send(end, 3000);
        pass(0, kSettled);
        meet(0);
        meet(0);
        send(end, 10);
      },
      [&](Endpoint& end) {
        meet(1);
        EXPECT_EQ(counters(1).out_of_buffer, 1u);
        ASSERT_EQ(end.receive(0, 100, 5), 0);
        meet(1);
        const auto wc = end.completion();
        EXPECT_EQ(wc.byte_len, 10u);
        EXPECT_EQ(wc.wr_id, 5u);
        EXPECT_EQ(end.state(), IBV_QPS_RTS);
      });
}

TEST_F(Uc, AMessageLongerThanItsReceiveIsLostAndTheReceiveStays) {
  run_uc(
      [&](Endpoint& end) {
        meet(0);
        send(end, 3000);
        send(end, 2999);
      },
      [&](Endpoint& end) {
        ASSERT_EQ(end.receive(0, 2999, 1), 0);
        meet(1);
        const auto wc = end.completion();
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        EXPECT_EQ(wc.byte_len, 2999u);
        EXPECT_FALSE(completion_soon(end.cq, 20));
        EXPECT_EQ(end.state(), IBV_QPS_RTS);
      });
  EXPECT_EQ(counters(1).silently_dropped, 1u);
}

TEST_F(Uc, AWriteThatIsNotGrantedIsLost) {
  run_uc(
      [&](Endpoint& end) {
        fill(end);
        auto wr = end.request(IBV_WR_RDMA_WRITE, 0, 3000);
        wr.wr.rdma.rkey ^= 1;
        ASSERT_EQ(end.post(wr), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        wr = end.request(IBV_WR_RDMA_WRITE, 0, 100, std::uint32_t(end.buffer.size() - 99));
        ASSERT_EQ(end.post(wr), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        pass(0, kSettled);
        meet(0);
      },
      [&](Endpoint& end) {
        meet(1);
        for (const auto byte : end.buffer) ASSERT_EQ(byte, 0);
        EXPECT_EQ(end.state(), IBV_QPS_RTS);
      });
}

// --- Sends that fail at the sender.
TEST_F(Uc, ASendThatFailsStopsTheSendQueueAlone) {
  run_uc(
      [&](Endpoint& end) {
        auto wr = end.request(IBV_WR_SEND, 0, 100);
        wr.sg_list->lkey ^= 1;
        wr.wr_id = 1;
        ASSERT_EQ(end.post(wr), 0);
        for (std::uint64_t id = 2; id < 4; ++id) {
          auto next = end.request(IBV_WR_SEND, 0, 100);
          next.wr_id = id;
          ASSERT_EQ(end.post(next), 0);
        }
        EXPECT_EQ(end.completion().status, IBV_WC_LOC_PROT_ERR);
        expect_completions(end.cq, IBV_WC_WR_FLUSH_ERR, 2, 2);
        EXPECT_EQ(end.state(), IBV_QPS_SQE);
        send(end, 100, IBV_WC_WR_FLUSH_ERR);
        // The receive queue continues.
        ASSERT_EQ(end.receive(0, 100, 8), 0);
        meet(0);
        EXPECT_EQ(end.completion().wr_id, 8u);
        ibv_qp_attr attributes{};
        attributes.qp_state = IBV_QPS_RTS;
        attributes.cur_qp_state = IBV_QPS_SQE;
        ASSERT_EQ(ibv_modify_qp(end.qp, &attributes, IBV_QP_STATE | IBV_QP_CUR_STATE), 0);
        fill(end);
        send(end, 2500);
      },
      [&](Endpoint& end) {
        ASSERT_EQ(end.receive(0, 4000, 1), 0);
        meet(1);
        send(end, 50);
        const auto wc = end.completion();
        EXPECT_EQ(wc.byte_len, 2500u);
        EXPECT_TRUE(filled(end, 0, 2500));
      });
}

TEST_F(Uc, AReceiveThatCantBeWrittenIsAnErrorOfTheQueuePair) {
  run_uc(
      [&](Endpoint& end) {
        meet(0);
        send(end, 100);
      },
      [&](Endpoint& end) {
        ibv_sge sge{reinterpret_cast<std::uint64_t>(end.buffer.data()), 100, end.mr->lkey ^ 1};
        ibv_recv_wr wr{.wr_id = 3, .next = nullptr, .sg_list = &sge, .num_sge = 1}, *bad;
        ASSERT_EQ(ibv_post_recv(end.qp, &wr, &bad), 0);
        ASSERT_EQ(end.receive(0, 100, 4), 0);
        meet(1);
        const auto wc = end.completion();
        EXPECT_EQ(wc.status, IBV_WC_LOC_PROT_ERR);
        EXPECT_EQ(wc.wr_id, 3u);
        expect_completions(end.cq, IBV_WC_WR_FLUSH_ERR, 4, 1);
        EXPECT_EQ(end.state(), IBV_QPS_ERR);
      });
}

// The message's last packet arrives before the first packet's write has failed.
TEST_F(Uc, AReceiveThatCantBeWrittenCompletesOnce) {
  run_uc(
      [&](Endpoint& end) {
        meet(0);
        send(end, 3000);
      },
      [&](Endpoint& end) {
        ibv_sge sge{reinterpret_cast<std::uint64_t>(end.buffer.data()), 4000, end.mr->lkey ^ 1};
        ibv_recv_wr wr{.wr_id = 3, .next = nullptr, .sg_list = &sge, .num_sge = 1}, *bad;
        ASSERT_EQ(ibv_post_recv(end.qp, &wr, &bad), 0);
        ASSERT_EQ(end.receive(0, 100, 4), 0);
        meet(1);
        expect_completions(end.cq, IBV_WC_LOC_PROT_ERR, 3, 1);
        expect_completions(end.cq, IBV_WC_WR_FLUSH_ERR, 4, 1);
        EXPECT_FALSE(completion_soon(end.cq));
      });
}

TEST_F(Uc, DrainsTheSendQueue) {
  run_uc(
      [&](Endpoint& end) {
        for (int i = 0; i < 3; ++i) ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, 8000)), 0);
        ibv_qp_attr attributes{};
        attributes.qp_state = IBV_QPS_SQD;
        attributes.en_sqd_async_notify = 1;
        ASSERT_EQ(ibv_modify_qp(end.qp, &attributes, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
        ibv_async_event event;
        ASSERT_EQ(ibv_get_async_event(end.context, &event), 0);
        EXPECT_EQ(event.event_type, IBV_EVENT_SQ_DRAINED);
        ibv_ack_async_event(&event);
        attributes.qp_state = IBV_QPS_RTS;
        ASSERT_EQ(ibv_modify_qp(end.qp, &attributes, IBV_QP_STATE), 0);
        for (int i = 0; i < 3; ++i) EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
      },
      [](Endpoint&) {});
}

// --- Packets that the wire loses.
class UcLoss : public Uc, public ::testing::WithParamInterface<const char*> {
 protected:
  UcLoss() : Uc({}, {GetParam()}) {}
};

TEST_P(UcLoss, TakesItsMessageAlone) {
  run_uc(
      [&](Endpoint& end) {
        fill(end);
        meet(0);
        for (std::uint32_t i = 0; i < 3; ++i) send(end, 3000 + i);
      },
      [&](Endpoint& end) {
        for (std::uint32_t i = 0; i < 3; ++i) ASSERT_EQ(end.receive(4000 * i, 4000, i), 0);
        meet(1);
        for (std::uint32_t i = 0; i < 2; ++i) {
          const auto wc = end.completion();
          EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
          EXPECT_EQ(wc.wr_id, i);  // the first receive is used by the next message
          EXPECT_EQ(wc.byte_len, i == 0 ? 3000 : 3002u);
          EXPECT_TRUE(filled(end, 4000 * i, wc.byte_len));
        }
        EXPECT_FALSE(completion_soon(end.cq, 20));
      });
}

INSTANTIATE_TEST_SUITE_P(OfTheSecondMessage, UcLoss,
                         ::testing::Values("drop,opcode=UC_SEND_FIRST,nth=2", "drop,opcode=UC_SEND_MIDDLE,nth=2",
                                           "drop,opcode=UC_SEND_LAST,nth=2"));

}  // namespace
}  // namespace rnicsim::testing
