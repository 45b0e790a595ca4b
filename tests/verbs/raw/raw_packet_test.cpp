// SPDX-License-Identifier: Apache-2.0
// Raw packets: frames as programs send and receive them, and refusals of the verbs.
#include <gmock/gmock.h>

#include "tests/verbs/raw/raw_packets.h"

namespace rnicsim::testing {
namespace {

FrameBytes bytes_of(const WireFrame& frame) {
  FrameBytes bytes;
  for (const std::byte byte : frame.bytes) bytes.push_back(std::uint8_t(byte));
  return bytes;
}

TEST_F(RawPackets, AFrameCrossesAsItIs) {
  const auto frame = ethernet_frame(1400);
  run_sending({frame}, [&](Endpoint& end) {
    RawQueue own(end, 0);
    own.lead_here(FlowRuleBytes().to_mac(kFarMac));
    own.receive();
    meet(1);
    ibv_wc wc{};
    EXPECT_EQ(own.received(&wc), frame);
    EXPECT_EQ(wc.qp_num, own.qp->qp_num);
    EXPECT_EQ(wc.src_qp, 0u);
    EXPECT_FALSE(wc.wc_flags & IBV_WC_GRH);
  });
  ASSERT_EQ(wire().size(), 1u);
  EXPECT_EQ(bytes_of(wire().front()), frame);
}

TEST_F(RawPackets, WithoutAFlowNobodyGetsIt) {
  run_sending({ethernet_frame()}, [&](Endpoint& end) {
    RawQueue own(end, 0);
    own.lead_here(FlowRuleBytes().to_mac(kNearMac));
    own.receive();
    meet(1);
    EXPECT_TRUE(own.nothing());
  });
}

TEST_F(RawPackets, TheDeviceFillsInChecksums) {
  run_both(
      [&](Endpoint& end) {
        RawQueue own(end, 0);
        meet(0);
        own.send(udp_frame(1, 2), IBV_SEND_IP_CSUM);
        own.send(udp_frame(1, 2));
      },
      [&](Endpoint& end) {
        RawQueue own(end, 0);
        own.lead_here(FlowRuleBytes().to_mac(kFarMac));
        own.receive(2);
        meet(1);
        ibv_wc wc{};
        const auto right = own.received(&wc);
        ASSERT_TRUE(right);
        EXPECT_EQ(ipv4_sum(*right), 0xffffu);
        EXPECT_TRUE((*right)[40] != 0 || (*right)[41] != 0) << "UDP's, too";
        EXPECT_TRUE(wc.wc_flags & IBV_WC_IP_CSUM_OK);
        const auto wrong = own.received(&wc);
        EXPECT_EQ(wrong, udp_frame(1, 2)) << "nothing was asked for";
        EXPECT_FALSE(wc.wc_flags & IBV_WC_IP_CSUM_OK);
      });
}

TEST_F(RawPackets, NeedOnlyAPort) {
  run_alone([](Endpoint& end) {
    RawQueue own(end, 0);
    ASSERT_EQ(move(own.qp, IBV_QPS_RESET), 0);
    EXPECT_EQ(move(own.qp, IBV_QPS_INIT), EINVAL);
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = 1;
    const int mask = IBV_QP_STATE | IBV_QP_PORT;
    for (const int more : {IBV_QP_QKEY, IBV_QP_PKEY_INDEX, IBV_QP_ACCESS_FLAGS})
      EXPECT_EQ(ibv_modify_qp(own.qp, &attributes, mask | more), EINVAL) << more;
    EXPECT_EQ(ibv_modify_qp(own.qp, &attributes, mask), 0);
    EXPECT_EQ(move(own.qp, IBV_QPS_RTR), 0);
    EXPECT_EQ(move(own.qp, IBV_QPS_RTS), 0);
    EXPECT_EQ(query(own.qp).qp_state, IBV_QPS_RTS);
  });
}

TEST_F(RawPackets, AnotherTransportsOperationFails) {
  run_alone([](Endpoint& end) {
    RawQueue own(end, 0);
    auto request = end.request(IBV_WR_RDMA_WRITE, 0, 64);
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(own.qp, &request, &bad), 0);
    const auto wc = completion_soon(own.cq);
    ASSERT_TRUE(wc);
    EXPECT_EQ(wc->status, IBV_WC_LOC_QP_OP_ERR);
  });
}

TEST_F(RawPackets, AreSentByTheExtendedCallsToo) {
  const auto frame = ethernet_frame(64);
  run_both(
      [&](Endpoint& end) {
        ibv_qp_init_attr_ex wanted{};
        wanted.send_cq = wanted.recv_cq = end.cq;
        wanted.cap = {4, 4, 1, 1, 64};
        wanted.qp_type = IBV_QPT_RAW_PACKET;
        wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        wanted.pd = end.pd;
        wanted.send_ops_flags = IBV_QP_EX_WITH_SEND;
        ibv_qp* qp = ibv_create_qp_ex(end.context, &wanted);
        ASSERT_NE(qp, nullptr);
        ibv_qp_attr attributes{};
        attributes.qp_state = IBV_QPS_INIT;
        attributes.port_num = 1;
        ASSERT_EQ(ibv_modify_qp(qp, &attributes, IBV_QP_STATE | IBV_QP_PORT), 0);
        ASSERT_EQ(move(qp, IBV_QPS_RTR), 0);
        ASSERT_EQ(move(qp, IBV_QPS_RTS), 0);
        meet(0);
        ibv_qp_ex* extended = ibv_qp_to_qp_ex(qp);
        ibv_wr_start(extended);
        extended->wr_id = 3;
        extended->wr_flags = IBV_SEND_SIGNALED;
        ibv_wr_send(extended);
        auto data = frame;
        ibv_wr_set_inline_data(extended, data.data(), data.size());
        EXPECT_EQ(ibv_wr_complete(extended), 0);
        EXPECT_EQ(end.completion().wr_id, 3u);
        ibv_wr_start(extended);
        ibv_wr_rdma_read(extended, 0, 0);
        EXPECT_EQ(ibv_wr_complete(extended), EOPNOTSUPP);
        EXPECT_EQ(ibv_destroy_qp(qp), 0);
      },
      [&](Endpoint& end) {
        RawQueue own(end, 0);
        own.lead_here(FlowRuleBytes().to_mac(kFarMac));
        own.receive();
        meet(1);
        EXPECT_EQ(own.received(), frame);
      });
}

TEST_F(RawPackets, SharedQueuesAreNotForThem) {
  run_alone(
      [](Endpoint& end) {
        ibv_qp_init_attr wanted{};
        wanted.send_cq = wanted.recv_cq = end.cq;
        wanted.srq = end.srq;
        wanted.cap = {1, 0, 1, 0, 0};
        wanted.qp_type = IBV_QPT_RAW_PACKET;
        errno = 0;
        EXPECT_EQ(ibv_create_qp(end.pd, &wanted), nullptr);
        EXPECT_EQ(errno, EINVAL);
      },
      {.shared_wr = shares_receives() ? 4u : 0u});
}

class WithoutPermission : public RawPackets {
 protected:
  WithoutPermission() : RawPackets({"host.raw_packets=false"}) {}
};

TEST_F(WithoutPermission, TheKernelRefuses) {
  run_alone([](Endpoint& end) {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = end.cq;
    wanted.cap = {1, 1, 1, 1, 0};
    wanted.qp_type = IBV_QPT_RAW_PACKET;
    errno = 0;
    EXPECT_EQ(ibv_create_qp(end.pd, &wanted), nullptr);
    EXPECT_EQ(errno, EPERM);
    ibv_wq_init_attr of_queue{};
    of_queue.wq_type = IBV_WQT_RQ;
    of_queue.max_wr = of_queue.max_sge = 1;
    of_queue.pd = end.pd;
    of_queue.cq = end.cq;
    errno = 0;
    EXPECT_EQ(ibv_create_wq(end.context, &of_queue), nullptr);
    EXPECT_EQ(errno, EPERM);
  });
}

}  // namespace
}  // namespace rnicsim::testing
