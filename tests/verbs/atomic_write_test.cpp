// SPDX-License-Identifier: Apache-2.0
// ATOMIC WRITE (IBTA 1.5): a word of the peer's memory, written as a unit and in order.
#include <cstring>

#include "model/nic/capability_params.h"
#include "tests/verbs/rc_pair.h"

namespace rnicsim::testing {
namespace {

constexpr std::uint64_t kWord = 0x1122334455667788;

class AtomicWrites : public RcPair {
 protected:
  void SetUp() override {
    if (!capabilities().atomic_write) GTEST_SKIP() << "nic.capabilities.atomic_write";
  }

  static std::uint64_t word(const Endpoint& end, std::size_t offset) {
    std::uint64_t value;
    std::memcpy(&value, end.buffer.data() + offset, sizeof value);
    return value;
  }
  static void set(Endpoint& end, std::size_t offset, std::uint64_t value) {
    std::memcpy(end.buffer.data() + offset, &value, sizeof value);
  }
  static void nothing(Endpoint&) {}
  // One request fails with this status.
  void expect_failure(ibv_wc_status status, std::uint32_t bytes, std::uint32_t remote, const EndpointOptions& of_h1) {
    run_connected(
        [&](Endpoint& end) {
          ASSERT_EQ(end.post(end.request(IBV_WR_ATOMIC_WRITE, 0, bytes, remote)), 0);
          EXPECT_EQ(end.completion().status, status);
        },
        [&](Endpoint& end) {
          pass(1, Duration{100'000'000});
          EXPECT_EQ(word(end, 0), 0u);
        },
        {}, of_h1);
  }
};

TEST_F(AtomicWrites, WriteAWord) {
  run_connected(
      [&](Endpoint& end) {
        set(end, 8, kWord);
        ASSERT_EQ(end.post(end.request(IBV_WR_ATOMIC_WRITE, 8, 8, 16)), 0);
        const auto wc = end.completion();
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        EXPECT_EQ(wc.opcode, IBV_WC_ATOMIC_WRITE);
        meet(0);
      },
      [&](Endpoint& end) {
        meet(1);
        EXPECT_EQ(word(end, 16), kWord);
        EXPECT_EQ(word(end, 8) | word(end, 24), 0u);
      });
}

TEST_F(AtomicWrites, InlineByTheExtendedCalls) {
  run(
      [&] {
        Endpoint end;
        ibv_qp_init_attr_ex wanted{};
        wanted.send_cq = wanted.recv_cq = end.cq;
        wanted.cap = {4, 4, 1, 1, 16};
        wanted.qp_type = IBV_QPT_RC;
        wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        wanted.pd = end.pd;
        wanted.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE;
        ibv_qp* qp = ibv_create_qp_ex(end.context, &wanted);
        ASSERT_NE(qp, nullptr);
        ibv_destroy_qp(end.qp);
        end.qp = qp;
        auto own = end.address();
        end.connect(own);  // to itself
        ibv_qp_ex* extended = ibv_qp_to_qp_ex(qp);
        ibv_wr_start(extended);
        extended->wr_flags = IBV_SEND_SIGNALED;
        ibv_wr_atomic_write(extended, own.rkey, own.buffer + 64, &kWord);
        ASSERT_EQ(ibv_wr_complete(extended), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        EXPECT_EQ(word(end, 64), kWord);
      },
      [] {});
}

// More atomic writes than the responder has resources for, between WRITEs of the same word and a READ behind them.
TEST_F(AtomicWrites, KeepTheirOrder) {
  EndpointOptions few;
  few.max_rd_atomic = 2;
  run_connected(
      [&](Endpoint& end) {
        for (std::uint32_t i = 0; i < 8; ++i) set(end, 8 * i, i + 1);
        for (std::uint32_t i = 0; i < 8; ++i)
          ASSERT_EQ(end.post(end.request(i % 2 ? IBV_WR_RDMA_WRITE : IBV_WR_ATOMIC_WRITE, 8 * i, 8, 512)), 0);
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_READ, 256, 8, 512)), 0);
        for (std::uint32_t i = 0; i < 8; ++i)
          EXPECT_EQ(end.completion().opcode, i % 2 ? IBV_WC_RDMA_WRITE : IBV_WC_ATOMIC_WRITE) << i;
        EXPECT_EQ(end.completion().opcode, IBV_WC_RDMA_READ);
        EXPECT_EQ(word(end, 256), 8u);
      },
      nothing, few, few);
}

TEST_F(AtomicWrites, AreNoLongerThanAWord) { expect_failure(IBV_WC_LOC_LEN_ERR, 16, 0, {}); }

TEST_F(AtomicWrites, AreNoShorterThanAWord) { expect_failure(IBV_WC_LOC_LEN_ERR, 4, 0, {}); }

TEST_F(AtomicWrites, AtAnAlignedAddress) { expect_failure(IBV_WC_REM_INV_REQ_ERR, 8, 4, {}); }

TEST_F(AtomicWrites, WhereTheRegionMayBeWritten) {
  EndpointOptions reads;
  reads.mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
  expect_failure(IBV_WC_REM_ACCESS_ERR, 8, 0, reads);
}

TEST_F(AtomicWrites, WhereTheQueuePairLetsThePeerWrite) {
  EndpointOptions denies;
  denies.qp_access = IBV_ACCESS_REMOTE_READ;
  expect_failure(IBV_WC_REM_ACCESS_ERR, 8, 0, denies);
}

TEST_F(AtomicWrites, AreOfRcAlone) {
  run_alone([](Endpoint& end) {
    for (const auto type : {IBV_QPT_UC, IBV_QPT_UD}) {
      ibv_qp_init_attr_ex wanted{};
      wanted.send_cq = wanted.recv_cq = end.cq;
      wanted.cap = {4, 4, 1, 1, 16};
      wanted.qp_type = type;
      wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
      wanted.pd = end.pd;
      wanted.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE;
      EXPECT_EQ(ibv_create_qp_ex(end.context, &wanted), nullptr);
      EXPECT_EQ(errno, EOPNOTSUPP);
    }
  });
}

}  // namespace
}  // namespace rnicsim::testing
