// SPDX-License-Identifier: Apache-2.0
// UD: datagrams that arrive and their completions, and datagrams that are lost.
#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

#include "model/nic/capability_params.h"
#include "tests/verbs/rc_pair.h"

namespace rnicsim::testing::ud_test {
namespace {

constexpr std::uint32_t kGrh = 40;
constexpr std::uint32_t kMtu = 4096;  // MTU of the port

class Ud : public RcPair {
 protected:
  using RcPair::RcPair;

  static EndpointOptions ud(std::uint8_t gid_index = 1) {
    EndpointOptions options;
    options.type = IBV_QPT_UD;
    options.gid_index = gid_index;
    return options;
  }
  void run_ud(Body on_h0, Body on_h1, std::uint8_t gid_index = 1) {
    run_connected(std::move(on_h0), std::move(on_h1), ud(gid_index), ud(gid_index));
  }
};

TEST_F(Ud, ADatagramLiesBehindItsGrh) {
  std::uint32_t sender = 0;
  run_ud(
      [&](Endpoint& end) {
        fill(end);
        sender = end.qp->qp_num;
        meet(0);
        auto wr = end.request(IBV_WR_SEND_WITH_IMM, 0, 100);
        wr.imm_data = 0x55667788;
        wr.wr_id = 3;
        ASSERT_EQ(end.post(wr), 0);
        const auto wc = end.completion();
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        EXPECT_EQ(wc.opcode, IBV_WC_SEND);
        EXPECT_EQ(wc.wr_id, 3u);
      },
      [&](Endpoint& end) {
        ASSERT_EQ(end.receive(0, 200, 9), 0);
        meet(1);
        const auto wc = end.completion();
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        EXPECT_EQ(wc.opcode, IBV_WC_RECV);
        EXPECT_EQ(wc.wr_id, 9u);
        EXPECT_EQ(wc.byte_len, kGrh + 100);
        EXPECT_EQ(wc.src_qp, sender);
        EXPECT_EQ(wc.wc_flags, unsigned(IBV_WC_GRH | IBV_WC_WITH_IMM));
        EXPECT_EQ(wc.imm_data, 0x55667788u);
        EXPECT_TRUE(filled(end, kGrh, 100));
        EXPECT_EQ(end.buffer[20], 0x45);  // an IPv4 header
        EXPECT_EQ(wc.sl, 2);              // as mlx5 reports it
      });
}

// With IBV_QP_CREATE_SOURCE_QPN.
class UdFromAnother : public Ud {
 protected:
  void SetUp() override {
    if (!capabilities().source_qpn) GTEST_SKIP() << "nic.capabilities.source_qpn";
  }
  static ibv_qp* create(Endpoint& end, std::uint32_t source, ibv_qp_type type = IBV_QPT_UD) {
    ibv_qp_init_attr_ex wanted{};
    wanted.send_cq = wanted.recv_cq = end.cq;
    wanted.cap = {4, 4, 1, 1, 0};
    wanted.qp_type = type;
    wanted.sq_sig_all = 1;
    wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
    wanted.pd = end.pd;
    wanted.create_flags = IBV_QP_CREATE_SOURCE_QPN;
    wanted.source_qpn = source;
    errno = 0;
    return ibv_create_qp_ex(end.context, &wanted);
  }
};

TEST_F(UdFromAnother, ADatagramNamesTheOtherQueuePair) {
  Exchange<EndpointAddress> addresses;
  run(
      [&] {
        Endpoint end(ud());
        ibv_destroy_qp(end.qp);
        end.qp = create(end, 0xabcdef);
        ASSERT_NE(end.qp, nullptr) << errno;
        end.connect(addresses.swap(0, end.address()));
        meet(0);
        send(end, 100);
      },
      [&] {
        Endpoint end(ud());
        end.connect(addresses.swap(1, end.address()));
        ASSERT_EQ(end.receive(0, 200), 0);
        meet(1);
        EXPECT_EQ(end.completion().src_qp, 0xabcdefu);
      });
}

TEST_F(UdFromAnother, OthersAreRefused) {
  run_alone([](Endpoint& end) {
    EXPECT_EQ(create(end, 0x1000000), nullptr) << "no 24-bit number";
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(create(end, 5, IBV_QPT_RC), nullptr);
    EXPECT_EQ(errno, EINVAL);
  });
}

TEST_F(Ud, OverIpv6TheGrhIsTheHeader) {
  run_ud(
      [&](Endpoint& end) {
        fill(end);
        meet(0);
        send(end, 1);
      },
      [&](Endpoint& end) {
        ASSERT_EQ(end.receive(0, 200), 0);
        meet(1);
        const auto wc = end.completion();
        EXPECT_EQ(wc.byte_len, kGrh + 1);
        EXPECT_EQ(wc.sl, 1);
        EXPECT_EQ(end.buffer[0] >> 4, 6);
        EXPECT_EQ(std::memcmp(end.buffer.data() + 24, end.address().gid.raw, 16), 0);
      },
      0);
}

TEST_F(Ud, AnswersToWhomTheCompletionNames) {
  run_ud(
      [&](Endpoint& end) {
        fill(end);
        ASSERT_EQ(end.receive(1024, 200), 0);
        meet(0);
        send(end, 50);
        EXPECT_EQ(end.completion().byte_len, kGrh + 60);
        EXPECT_TRUE(filled(end, 1024 + kGrh, 50));
      },
      [&](Endpoint& end) {
        ASSERT_EQ(end.receive(0, 200), 0);
        meet(1);
        auto wc = end.completion();
        ibv_ah* back = ibv_create_ah_from_wc(end.pd, &wc, reinterpret_cast<ibv_grh*>(end.buffer.data()), 1);
        ASSERT_NE(back, nullptr);
        auto wr = end.request(IBV_WR_SEND, kGrh, 60);
        wr.wr.ud.ah = back;
        wr.wr.ud.remote_qpn = wc.src_qp;
        ASSERT_EQ(end.post(wr), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        EXPECT_EQ(ibv_destroy_ah(back), 0);
      });
}

TEST_F(Ud, AnAddressHandleMayGoBeforeItsSendCompletes) {
  run_ud(
      [&](Endpoint& end) {
        meet(0);
        ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 10)), 0);
        EXPECT_EQ(ibv_destroy_ah(std::exchange(end.ah, nullptr)), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
      },
      [&](Endpoint& end) {
        ASSERT_EQ(end.receive(0, 200), 0);
        meet(1);
        EXPECT_EQ(end.completion().byte_len, kGrh + 10);
      });
}

TEST_F(Ud, TheOperationsOfConnectionsCompleteInError) {
  run_ud(
      [&](Endpoint& end) {
        meet(0);
        for (const auto opcode :
             {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
              IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_SEND_WITH_INV, IBV_WR_LOCAL_INV, IBV_WR_BIND_MW, IBV_WR_TSO}) {
          SCOPED_TRACE(opcode);
          auto wrong = end.request(opcode, 0, 8);
          wrong.wr_id = 5;
          wrong.wr.rdma = {~0ull, 1};  // overlaps the place of a datagram's address handle
          if (opcode == IBV_WR_SEND_WITH_INV || opcode == IBV_WR_LOCAL_INV) wrong.invalidate_rkey = end.mr->rkey;
          ASSERT_EQ(end.post(wrong), 0);
          const auto wc = end.completion();
          EXPECT_EQ(wc.status, IBV_WC_LOC_QP_OP_ERR);
          EXPECT_EQ(wc.wr_id, 5u);
          EXPECT_EQ(end.state(), IBV_QPS_SQE);
          ASSERT_EQ(move(end.qp, IBV_QPS_RTS), 0);
        }
        send(end, 8);
        for (const auto opcode : {IBV_WR_DRIVER1, ibv_wr_opcode(99)})
          EXPECT_EQ(end.post(end.request(opcode, 0, 8)), EINVAL) << opcode;
        auto many = end.request(IBV_WR_RDMA_WRITE, 0, 8);
        many.num_sge = 1000;
        EXPECT_EQ(end.post(many), EINVAL);
        auto wr = end.request(IBV_WR_SEND, 0, 8);
        wr.wr.ud.ah = nullptr;
        EXPECT_EQ(end.post(wr), EINVAL);
      },
      [&](Endpoint& end) {
        for (int i = 0; i < 2; ++i) ASSERT_EQ(end.receive(0, 200), 0);
        meet(1);
        EXPECT_EQ(end.completion().byte_len, kGrh + 8);
        pass(1, kSettled);
        EXPECT_FALSE(completion_soon(end.cq, 2));
      });
}

TEST_F(Ud, ADatagramOfTheMtuGoesAndNoLongerOne) {
  run_ud(
      [&](Endpoint& end) {
        meet(0);
        send(end, kMtu);
        send(end, kMtu + 1, IBV_WC_LOC_LEN_ERR);
        EXPECT_EQ(end.state(), IBV_QPS_SQE);
        send(end, 1, IBV_WC_WR_FLUSH_ERR);
        ibv_qp_attr attributes{};
        attributes.qp_state = IBV_QPS_RTS;
        ASSERT_EQ(ibv_modify_qp(end.qp, &attributes, IBV_QP_STATE), 0);
        send(end, 2);
      },
      [&](Endpoint& end) {
        for (int i = 0; i < 2; ++i) ASSERT_EQ(end.receive(0, kGrh + kMtu), 0);
        meet(1);
        EXPECT_EQ(end.completion().byte_len, kGrh + kMtu);
        EXPECT_EQ(end.completion().byte_len, kGrh + 2);
      });
}

// --- The sender succeeds, and nothing arrives.
TEST_F(Ud, AReceiveThatIsTooShortStays) {
  run_ud(
      [&](Endpoint& end) {
        meet(0);
        send(end, 61);
        send(end, 60);
      },
      [&](Endpoint& end) {
        ASSERT_EQ(end.receive(0, kGrh + 60), 0);
        meet(1);
        EXPECT_EQ(end.completion().byte_len, kGrh + 60);
        EXPECT_FALSE(completion_soon(end.cq, 20));
        EXPECT_EQ(end.state(), IBV_QPS_RTS);
      });
  EXPECT_EQ(counters(1).silently_dropped, 1u);
}

TEST_F(Ud, WithoutAReceiveItIsLost) {
  run_ud(
      [&](Endpoint& end) {
        send(end, 10);
        pass(0, kSettled);
        meet(0);
      },
      [&](Endpoint& end) {
        meet(1);
        EXPECT_FALSE(completion_soon(end.cq, 2));
      });
  EXPECT_EQ(counters(1).out_of_buffer, 1u);
}

TEST_F(Ud, ToAQueuePairThatIsNotThereItIsLost) {
  run_ud(
      [&](Endpoint& end) {
        auto wr = end.request(IBV_WR_SEND, 0, 10);
        wr.wr.ud.remote_qpn = 0xabcde;
        ASSERT_EQ(end.post(wr), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        pass(0, kSettled);
        meet(0);
      },
      [&](Endpoint&) { meet(1); });
  EXPECT_EQ(counters(1).unknown_qp, 1u);
}

TEST_F(Ud, WithAnotherQkeyItIsLost) {
  run_ud(
      [&](Endpoint& end) {
        meet(0);
        auto wr = end.request(IBV_WR_SEND, 0, 10);
        wr.wr.ud.remote_qkey ^= 1;
        ASSERT_EQ(end.post(wr), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        // With the top bit set, the queue pair's own Q_Key is sent.
        wr.wr.ud.remote_qkey = 0x80000000;
        wr.sg_list->length = 11;
        ASSERT_EQ(end.post(wr), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
      },
      [&](Endpoint& end) {
        ASSERT_EQ(end.receive(0, 100), 0);
        meet(1);
        EXPECT_EQ(end.completion().byte_len, kGrh + 11);
        ibv_port_attr port{};
        ASSERT_EQ(ibv_query_port(end.context, 1, &port), 0);
        EXPECT_EQ(port.qkey_viol_cntr, 1u);
      });
  EXPECT_EQ(counters(1).bad_qkey, 1u);
}

// --- ibv_wr_*.
TEST_F(Ud, TheExtendedPostTakesAnAddressAndData) {
  run_ud(
      [&](Endpoint& end) {
        ibv_qp_init_attr_ex wanted{};
        wanted.send_cq = wanted.recv_cq = end.cq;
        wanted.cap = {16, 16, 1, 1, 64};
        wanted.qp_type = IBV_QPT_UD;
        wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        wanted.pd = end.pd;
        wanted.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
        ibv_qp* own = std::exchange(end.qp, ibv_create_qp_ex(end.context, &wanted));
        ASSERT_NE(end.qp, nullptr);
        const auto ah = std::exchange(end.ah, nullptr);
        const auto to = end.request(IBV_WR_SEND, 0, 1).wr.ud;
        end.to_init();
        ibv_qp_attr attributes{};
        attributes.qp_state = IBV_QPS_RTR;
        ASSERT_EQ(ibv_modify_qp(end.qp, &attributes, IBV_QP_STATE), 0);
        end.to_rts();
        ibv_qp_ex* qp = ibv_qp_to_qp_ex(end.qp);
        ASSERT_NE(qp, nullptr);
        fill(end);
        meet(0);
        const auto begin = [&](std::uint64_t id) {
          ibv_wr_start(qp);
          qp->wr_id = id;
          qp->wr_flags = IBV_SEND_SIGNALED;
        };
        const auto lkey = end.mr->lkey;
        const auto at = reinterpret_cast<std::uint64_t>(end.buffer.data());
        begin(1);
        ibv_wr_send(qp);
        ibv_wr_set_ud_addr(qp, ah, to.remote_qpn, to.remote_qkey);
        ibv_wr_set_sge(qp, lkey, at, 30);
        qp->wr_id = 2;
        ibv_wr_send_imm(qp, 0x1234);
        ibv_wr_set_inline_data(qp, end.buffer.data(), 31);
        ibv_wr_set_ud_addr(qp, ah, to.remote_qpn, to.remote_qkey);
        EXPECT_EQ(ibv_wr_complete(qp), 0);
        expect_completions(end.cq, IBV_WC_SUCCESS, 1, 2);
        begin(3);
        ibv_wr_send(qp);
        ibv_wr_set_sge(qp, lkey, at, 32);
        EXPECT_EQ(ibv_wr_complete(qp), EINVAL);  // no address
        begin(4);
        ibv_wr_set_ud_addr(qp, ah, to.remote_qpn, to.remote_qkey);
        EXPECT_EQ(ibv_wr_complete(qp), EINVAL);  // no data
        begin(5);
        ibv_wr_rdma_write(qp, 1, 2);
        EXPECT_EQ(ibv_wr_complete(qp), EOPNOTSUPP);
        EXPECT_EQ(ibv_destroy_ah(ah), 0);
        EXPECT_EQ(ibv_destroy_qp(own), 0);
      },
      [&](Endpoint& end) {
        for (std::uint32_t i = 0; i < 2; ++i) ASSERT_EQ(end.receive(1000 * i, 100, i), 0);
        meet(1);
        for (std::uint32_t i = 0; i < 2; ++i) {
          EXPECT_EQ(end.completion().byte_len, kGrh + 30 + i);
          EXPECT_TRUE(filled(end, 1000 * i + kGrh, 30 + i));
        }
      });
}

TEST_F(Ud, OperationsOfConnectionsAreRefusedAtCreation) {
  run_alone(
      [](Endpoint& end) {
        for (const auto operation : {IBV_QP_EX_WITH_RDMA_WRITE, IBV_QP_EX_WITH_RDMA_READ, IBV_QP_EX_WITH_LOCAL_INV}) {
          ibv_qp_init_attr_ex wanted{};
          wanted.send_cq = wanted.recv_cq = end.cq;
          wanted.cap = {16, 16, 1, 1, 64};
          wanted.qp_type = IBV_QPT_UD;
          wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
          wanted.pd = end.pd;
          wanted.send_ops_flags = operation;
          EXPECT_EQ(ibv_create_qp_ex(end.context, &wanted), nullptr);
          EXPECT_EQ(errno, EOPNOTSUPP);
        }
      },
      ud());
}

}  // namespace
}  // namespace rnicsim::testing::ud_test
