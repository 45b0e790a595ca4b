// SPDX-License-Identifier: Apache-2.0
// Flows: the receiver of each frame, tags, and counters.
#include <gmock/gmock.h>

#include "tests/verbs/raw/raw_packets.h"

namespace rnicsim::testing {
namespace {

using ::testing::ElementsAre;

class Flows : public RawPackets {};

TEST_F(Flows, TheLowestPriorityIsFirst) {
  const auto frame = udp_frame(1, 2000);
  run_sending({frame, udp_frame(1, 2001)}, [&](Endpoint& end) {
    RawQueue all(end, 0), some(end, 1);
    all.lead_here(FlowRuleBytes().with(IBV_FLOW_ATTR_NORMAL, 7).to_mac(kFarMac));
    some.lead_here(FlowRuleBytes().with(IBV_FLOW_ATTR_NORMAL, 3).to_mac(kFarMac).to_udp_port(2000));
    all.receive(2);
    some.receive(2);
    meet(1);
    EXPECT_EQ(some.received(), frame);
    EXPECT_EQ(all.received(), udp_frame(1, 2001));
    EXPECT_TRUE(some.nothing());
    EXPECT_TRUE(all.nothing());
  });
}

// Masks may have any bits; value bits outside of the mask are ignored.
TEST_F(Flows, MasksNeedNotBeWhole) {
  const auto odd = udp_frame(1, 0x1235), even = udp_frame(1, 0x0f34);
  run_sending({odd, even}, [&](Endpoint& end) {
    RawQueue own(end, 0);
    ibv_flow_spec_eth ethernet{};
    std::memset(&ethernet.val, 0xff, sizeof ethernet.val);
    ethernet.mask.dst_mac[5] = 0x55;
    ibv_flow_spec_tcp_udp udp{};
    udp.val.dst_port = 0xffff;
    udp.mask.dst_port = __builtin_bswap16(0x0001);
    own.lead_here(FlowRuleBytes().add(IBV_FLOW_SPEC_ETH, ethernet).add(IBV_FLOW_SPEC_UDP, udp));
    own.receive(2);
    meet(1);
    EXPECT_EQ(own.received(), odd);
    EXPECT_TRUE(own.nothing());
  });
}

TEST_F(Flows, TellTheirTag) {
  run_sending({ethernet_frame()}, [&](Endpoint& end) {
    RawQueue own(end, 0);
    ibv_flow_spec_action_tag tag{};
    tag.tag_id = 0x123456;
    own.lead_here(FlowRuleBytes().to_mac(kFarMac).add(IBV_FLOW_SPEC_ACTION_TAG, tag));
    own.receive();
    meet(1);
    ibv_poll_cq_attr poll{};
    int error = ENOENT;
    for (int look = 0; look < 100 && error == ENOENT; ++look) error = ibv_start_poll(own.cq_ex, &poll);
    ASSERT_EQ(error, 0);
    EXPECT_EQ(ibv_wc_read_flow_tag(own.cq_ex), 0x123456u);
    ibv_end_poll(own.cq_ex);
  });
}

TEST_F(Flows, DropAndCount) {
  const std::vector<FrameBytes> frames{udp_frame(1, 2000), ethernet_frame(200), udp_frame(2, 2000)};
  run_sending(frames, [&](Endpoint& end) {
    ibv_counters_init_attr none{};
    ibv_counters* counters = ibv_create_counters(end.context, &none);
    ASSERT_NE(counters, nullptr);
    for (const auto& [what, index] : {std::pair{IBV_COUNTER_PACKETS, 0u}, std::pair{IBV_COUNTER_BYTES, 1u}}) {
      ibv_counter_attach_attr point{};
      point.counter_desc = what;
      point.index = index;
      ASSERT_EQ(ibv_attach_counters_point_flow(counters, &point, nullptr), 0);
    }
    {
      RawQueue own(end, 0);
      ibv_flow_spec_counter_action count{};
      count.counters = counters;
      own.lead_here(FlowRuleBytes()
                        .to_mac(kFarMac)
                        .to_udp_port(2000)
                        .add(IBV_FLOW_SPEC_ACTION_DROP, ibv_flow_spec_action_drop{})
                        .add(IBV_FLOW_SPEC_ACTION_COUNT, count));
      own.lead_here(FlowRuleBytes().with(IBV_FLOW_ATTR_NORMAL, 1).to_mac(kFarMac));
      own.receive(3);
      EXPECT_EQ(ibv_destroy_counters(counters), EBUSY);
      meet(1);
      EXPECT_EQ(own.received(), frames[1]);
      EXPECT_TRUE(own.nothing());
      std::uint64_t values[2] = {};
      ASSERT_EQ(ibv_read_counters(counters, values, 2, 0), 0);
      EXPECT_THAT(values, ElementsAre(2u, frames[0].size() + frames[2].size()));
    }
    EXPECT_EQ(ibv_destroy_counters(counters), 0);
  });
}

TEST_F(Flows, DefaultsTakeWhatNobodyTakes) {
  const Mac group = {0x01, 0, 0x5e, 1, 2, 3};
  run_sending({ethernet_frame(), ethernet_frame(80, kNearMac), ethernet_frame(90, group)}, [&](Endpoint& end) {
    RawQueue own(end, 0), rest(end, 1), groups(end, 2);
    own.lead_here(FlowRuleBytes().to_mac(kFarMac));
    groups.lead_here(FlowRuleBytes().with(IBV_FLOW_ATTR_MC_DEFAULT));
    rest.lead_here(FlowRuleBytes().with(IBV_FLOW_ATTR_ALL_DEFAULT));
    for (auto* queue : {&own, &rest, &groups}) queue->receive(3);
    meet(1);
    EXPECT_EQ(own.received(), ethernet_frame());
    EXPECT_TRUE(own.nothing());
    EXPECT_EQ(rest.received(), ethernet_frame(80, kNearMac));
    EXPECT_EQ(groups.received(), ethernet_frame(90, group));
    EXPECT_TRUE(groups.nothing());
  });
}

TEST_F(Flows, SniffersAndThoseThatPassOnGetCopies) {
  run_sending({ethernet_frame()}, [&](Endpoint& end) {
    RawQueue own(end, 0), sniffer(end, 1), first(end, 2);
    own.lead_here(FlowRuleBytes().with(IBV_FLOW_ATTR_NORMAL, 1).to_mac(kFarMac));
    sniffer.lead_here(FlowRuleBytes().with(IBV_FLOW_ATTR_SNIFFER));
    first.lead_here(FlowRuleBytes().with(IBV_FLOW_ATTR_NORMAL, 0, IBV_FLOW_ATTR_FLAGS_DONT_TRAP).to_mac(kFarMac));
    for (auto* queue : {&own, &sniffer, &first}) queue->receive();
    meet(1);
    for (auto* queue : {&own, &sniffer, &first}) EXPECT_EQ(queue->received(), ethernet_frame());
  });
}

TEST_F(Flows, WhatTheyLeadToIsBusy) {
  run_alone([](Endpoint& end) {
    RawQueue own(end, 0);
    FlowRuleBytes rule;
    ibv_flow* flow = rule.to_mac(kFarMac).create(own.qp);
    ASSERT_NE(flow, nullptr);
    EXPECT_EQ(ibv_destroy_qp(own.qp), EBUSY);
    EXPECT_EQ(ibv_destroy_flow(flow), 0);
    EXPECT_EQ(FlowRuleBytes().create(end.qp), nullptr);
    EXPECT_EQ(errno, EINVAL) << "a connection's";
  });
}

// Flows of a closed context take no frames.
TEST_F(Flows, LeftWithTheContext) {
  run_alone([](Endpoint& end) {
    ibv_context* context = ibv_open_device(end.context->device);
    ibv_pd* pd = ibv_alloc_pd(context);
    ibv_cq* cq = ibv_create_cq(context, 4, nullptr, nullptr, 0);
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = cq;
    wanted.cap = {1, 1, 1, 1, 0};
    wanted.qp_type = IBV_QPT_RAW_PACKET;
    ibv_qp* qp = ibv_create_qp(pd, &wanted);
    ASSERT_NE(qp, nullptr);
    FlowRuleBytes rule;
    ASSERT_NE(rule.to_mac(kFarMac).create(qp), nullptr);
    EXPECT_EQ(ibv_close_device(context), 0);
  });
}

class FewFlows : public RawPackets {
 protected:
  FewFlows() : RawPackets({"nic.capabilities.max_flows=2", "nic.capabilities.max_flow_counters=1"}) {}
};

TEST_F(FewFlows, NoMoreThanTheDeviceSays) {
  run_alone([](Endpoint& end) {
    RawQueue own(end, 0);
    own.lead_here(FlowRuleBytes().to_mac(kFarMac));
    own.lead_here(FlowRuleBytes().to_mac(kNearMac));
    EXPECT_EQ(FlowRuleBytes().create(own.qp), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    ibv_counters_init_attr none{};
    ibv_counters* counters = ibv_create_counters(end.context, &none);
    ASSERT_NE(counters, nullptr);
    errno = 0;
    EXPECT_EQ(ibv_create_counters(end.context, &none), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(ibv_destroy_counters(counters), 0);
  });
}

}  // namespace
}  // namespace rnicsim::testing
