// SPDX-License-Identifier: Apache-2.0
// Flows and counters; a context that is closed with all its objects; a device without raw packets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>
#include <vector>

#include "tests/unit/verbs/raw_verbs.h"

namespace rnicsim {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TEST_F(RawVerbsTest, AFlowsConditionsAndActions) {
  ibv_qp* qp = make_qp();
  ibv_counters_init_attr none{};
  ibv_counters* counters = ibv_create_counters(context_, &none);
  ASSERT_NE(counters, nullptr);
  Rule rule;
  rule.attributes().priority = 0xfedc;
  rule.attributes().flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
  ibv_flow_spec_eth ethernet{};
  std::memset(&ethernet.val, 0xff, sizeof ethernet.val);
  ethernet.mask.dst_mac[5] = 0x0f;
  ethernet.mask.vlan_tag = 0xff0f;
  ibv_flow_spec_ipv4_ext ipv4{};
  ipv4.val.src_ip = ipv4.mask.src_ip = 0x0100000a;  // network order: 10.0.0.1
  ipv4.val.flags = ipv4.mask.flags = 2;
  ibv_flow_spec_ipv6 ipv6{};
  std::memset(&ipv6.val, 0xff, sizeof ipv6.val);
  std::memset(&ipv6.mask, 0xff, sizeof ipv6.mask);
  ibv_flow_spec_tcp_udp udp{};
  udp.val.dst_port = udp.mask.dst_port = 0x3412;
  ibv_flow_spec_action_tag tag{};
  tag.tag_id = 0xabcdef;
  ibv_flow_spec_counter_action count{};
  count.counters = counters;
  rule.add(IBV_FLOW_SPEC_ETH, ethernet)
      .add(IBV_FLOW_SPEC_IPV4_EXT, ipv4)
      .add(IBV_FLOW_SPEC_IPV6 | IBV_FLOW_SPEC_INNER, ipv6)
      .add(IBV_FLOW_SPEC_UDP | IBV_FLOW_SPEC_INNER, udp)
      .add(IBV_FLOW_SPEC_ACTION_TAG, tag)
      .add(IBV_FLOW_SPEC_ACTION_DROP, ibv_flow_spec_action_drop{})
      .add(IBV_FLOW_SPEC_ACTION_COUNT, count);
  ibv_flow* flow = ibv_create_flow(qp, &rule.attributes());
  ASSERT_NE(flow, nullptr);
  EXPECT_EQ(flow->context, context_);
  const auto made = *asked<abi::CreateFlow>(abi::CommandOpcode::create_flow);
  EXPECT_EQ(made.qpn, qp->qp_num);
  EXPECT_EQ(made.priority, 0xfedc);
  EXPECT_EQ(made.kind, abi::FlowKind::normal);
  EXPECT_EQ(made.flags, 0xf);
  EXPECT_EQ(made.tag, 0xabcdefu);
  ASSERT_EQ(made.conditions_count, 4);
  const auto& [first, second, third, fourth] =
      std::tie(made.conditions[0], made.conditions[1], made.conditions[2], made.conditions[3]);
  EXPECT_EQ(first.header, abi::FlowHeader::ethernet);
  EXPECT_EQ(first.inner, 0);
  EXPECT_EQ(first.value[5], 0x0f) << "what the mask leaves of it";
  EXPECT_THAT(std::vector(first.value + 14, first.value + 16), ElementsAre(0x0f, 0xff));
  EXPECT_EQ(first.value[0], 0);
  EXPECT_EQ(second.header, abi::FlowHeader::ipv4);
  EXPECT_THAT(std::vector(second.value, second.value + 12), ElementsAre(10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2));
  EXPECT_EQ(third.header, abi::FlowHeader::ipv6);
  EXPECT_EQ(third.inner, 1);
  EXPECT_THAT(std::vector(third.mask, third.mask + 39), Each(0xff));
  EXPECT_EQ(third.mask[39], 0) << "padding";
  EXPECT_EQ(fourth.header, abi::FlowHeader::udp);
  EXPECT_THAT(std::vector(fourth.value, fourth.value + 4), ElementsAre(0x12, 0x34, 0, 0));
  EXPECT_EQ(ibv_destroy_counters(counters), 0) << "the kernel would refuse that";
  const auto handle = flow->handle;
  flow->handle = 999;
  EXPECT_EQ(ibv_destroy_flow(flow), ENOENT);
  flow->handle = handle;
  EXPECT_EQ(ibv_destroy_flow(flow), 0);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(RawVerbsTest, EverySpecHasItsHeader) {
  ibv_qp* qp = make_qp();
  const auto header_of = [&](std::uint32_t type, auto spec) {
    EXPECT_EQ(refusal_of_flow(qp, Rule().add(type, spec)), 0) << type;
    return asked<abi::CreateFlow>(abi::CommandOpcode::create_flow)->conditions[0].header;
  };
  EXPECT_EQ(header_of(IBV_FLOW_SPEC_IPV4, ibv_flow_spec_ipv4{}), abi::FlowHeader::ipv4);
  EXPECT_EQ(header_of(IBV_FLOW_SPEC_ESP, ibv_flow_spec_esp{}), abi::FlowHeader::esp);
  EXPECT_EQ(header_of(IBV_FLOW_SPEC_TCP, ibv_flow_spec_tcp_udp{}), abi::FlowHeader::tcp);
  EXPECT_EQ(header_of(IBV_FLOW_SPEC_VXLAN_TUNNEL, ibv_flow_spec_tunnel{}), abi::FlowHeader::vxlan);
  EXPECT_EQ(header_of(IBV_FLOW_SPEC_GRE, ibv_flow_spec_gre{}), abi::FlowHeader::gre);
  EXPECT_EQ(header_of(IBV_FLOW_SPEC_MPLS, ibv_flow_spec_mpls{}), abi::FlowHeader::mpls);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(RawVerbsTest, FlowsAreRefused) {
  ibv_qp* qp = make_qp();
  ibv_qp* connected = make_qp(IBV_QPT_RC);
  ibv_qp* datagrams = make_qp(IBV_QPT_UD);
  EXPECT_EQ(refusal_of_flow(qp, Rule()), 0);
  EXPECT_EQ(refusal_of_flow(connected, Rule()), EINVAL);
  EXPECT_EQ(refusal_of_flow(datagrams, Rule()), EOPNOTSUPP);
  EXPECT_EQ(refusal_of_flow(qp, [](auto& wanted) { wanted.comp_mask = 1; }), EINVAL);
  EXPECT_EQ(refusal_of_flow(qp, [](auto& wanted) { wanted.flags = 1; }), EINVAL);
  EXPECT_EQ(refusal_of_flow(qp, [](auto& wanted) { wanted.flags = IBV_FLOW_ATTR_FLAGS_EGRESS; }), EOPNOTSUPP);
  EXPECT_EQ(refusal_of_flow(qp, [](auto& wanted) { wanted.flags = 8; }), EINVAL);
  EXPECT_EQ(refusal_of_flow(qp, [](auto& wanted) { wanted.port = 0; }), EINVAL);
  EXPECT_EQ(refusal_of_flow(qp, [](auto& wanted) { wanted.port = 2; }), EINVAL);
  const auto number = qp->handle;
  qp->handle = 999;
  EXPECT_EQ(refusal_of_flow(qp, Rule()), ENOENT);
  qp->handle = number;
  for (const auto type : {IBV_FLOW_ATTR_ALL_DEFAULT, IBV_FLOW_ATTR_MC_DEFAULT, IBV_FLOW_ATTR_SNIFFER}) {
    Rule rule;
    rule.attributes().type = type;
    EXPECT_EQ(refusal_of_flow(qp, rule), 0);
    EXPECT_EQ(asked<abi::CreateFlow>(abi::CommandOpcode::create_flow)->kind, abi::FlowKind(type));
    rule.add(IBV_FLOW_SPEC_ACTION_TAG, ibv_flow_spec_action_tag{});
    EXPECT_EQ(refusal_of_flow(qp, rule), 0);
    rule.add(IBV_FLOW_SPEC_ETH, ibv_flow_spec_eth{});
    EXPECT_EQ(refusal_of_flow(qp, rule), EINVAL);
  }
  Rule many;
  for (int i = 0; i < 16; ++i) many.add(IBV_FLOW_SPEC_MPLS, ibv_flow_spec_mpls{});
  EXPECT_EQ(refusal_of_flow(qp, many), 0);
  many.add(IBV_FLOW_SPEC_MPLS, ibv_flow_spec_mpls{});
  EXPECT_EQ(refusal_of_flow(qp, many), EINVAL);

  EXPECT_EQ(refusal_of_flow(qp, Rule().add(IBV_FLOW_SPEC_ETH, ibv_flow_spec_eth{}, 8)), EINVAL) << "too short";
  EXPECT_EQ(refusal_of_flow(qp, Rule().add(IBV_FLOW_SPEC_ETH, ibv_flow_spec_eth{}, 0)), EINVAL);
  EXPECT_EQ(refusal_of_flow(qp, Rule().add(IBV_FLOW_SPEC_ETH, ibv_flow_spec_eth{}, 0xffff)), EINVAL);
  EXPECT_EQ(refusal_of_flow(qp, Rule().add(0x99, ibv_flow_spec_eth{})), EINVAL) << "unknown";
  using Tag = ibv_flow_spec_action_tag;
  EXPECT_EQ(refusal_of_flow(qp, Rule().add(IBV_FLOW_SPEC_ACTION_TAG | IBV_FLOW_SPEC_INNER, Tag{})), EINVAL);
  EXPECT_EQ(refusal_of_flow(qp, Rule().add(IBV_FLOW_SPEC_ACTION_TAG, Tag{}).add(IBV_FLOW_SPEC_ACTION_TAG, Tag{})),
            EINVAL);
  EXPECT_EQ(refusal_of_flow(qp, Rule().add(IBV_FLOW_SPEC_ACTION_HANDLE, ibv_flow_spec_action_handle{})), EOPNOTSUPP);
  EXPECT_EQ(refusal_of_flow(qp, Rule().add(IBV_FLOW_SPEC_ACTION_COUNT, ibv_flow_spec_counter_action{})), EINVAL);
  port_.refused[abi::CommandOpcode::create_flow] = EPERM;
  EXPECT_EQ(refusal_of_flow(qp, Rule()), EPERM);
  for (ibv_qp* made : {qp, connected, datagrams}) EXPECT_EQ(ibv_destroy_qp(made), 0);
}

// As rdma-core does, the library uses the number of specs, and the specs' own sizes.
TEST_F(RawVerbsTest, FlowsThatLieAboutTheirSpecs) {
  ibv_qp* qp = make_qp();
  const auto conditions = [&] { return asked<abi::CreateFlow>(abi::CommandOpcode::create_flow)->conditions_count; };
  Rule rule;
  rule.add(IBV_FLOW_SPEC_ETH, ibv_flow_spec_eth{}).add(IBV_FLOW_SPEC_UDP, ibv_flow_spec_tcp_udp{});
  for (const std::uint16_t size : {0, 1, 0xffff}) {
    rule.attributes().size = size;
    EXPECT_EQ(refusal_of_flow(qp, rule), 0) << size;
    EXPECT_EQ(conditions(), 2);
  }
  for (const std::uint8_t fewer : {0, 1}) {
    rule.attributes().num_of_specs = fewer;
    EXPECT_EQ(refusal_of_flow(qp, rule), 0);
    EXPECT_EQ(conditions(), fewer);
  }
  rule.attributes().num_of_specs = 2;
  EXPECT_EQ(refusal_of_flow(qp, Rule(rule).add(0, ibv_flow_spec_eth{}, 0)), EINVAL) << "zeros behind";
  const std::pair<std::uint32_t, std::uint16_t> wrong[] = {{IBV_FLOW_SPEC_ETH, sizeof(ibv_flow_spec_eth) - 1},
                                                           {IBV_FLOW_SPEC_ETH, sizeof(ibv_flow_spec_eth) + 1},
                                                           {IBV_FLOW_SPEC_IPV4, sizeof(ibv_flow_spec_eth)},
                                                           {IBV_FLOW_SPEC_ACTION_DROP, sizeof(ibv_flow_spec_eth)},
                                                           {0x1f, sizeof(ibv_flow_spec_eth)},
                                                           {0x33, sizeof(ibv_flow_spec_eth)},
                                                           {0x200 | IBV_FLOW_SPEC_ETH, sizeof(ibv_flow_spec_eth)},
                                                           {0x1004, sizeof(ibv_flow_spec_eth)},
                                                           {~0u, sizeof(ibv_flow_spec_eth)}};
  for (const auto& [type, size] : wrong)
    EXPECT_EQ(refusal_of_flow(qp, Rule(rule).add(type, ibv_flow_spec_eth{}, size)), EINVAL) << type << ", " << size;
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(RawVerbsTest, CountersAreReadWhereTheyWereAttached) {
  ibv_qp* qp = make_qp();
  ibv_counters_init_attr wanted{.comp_mask = 1};
  EXPECT_EQ(ibv_create_counters(context_, &wanted), nullptr);
  EXPECT_EQ(errno, EINVAL);
  wanted.comp_mask = 0;
  ibv_counters* counters = ibv_create_counters(context_, &wanted);
  ASSERT_NE(counters, nullptr);
  const auto attach = [&](int what, std::uint32_t index, std::uint32_t mask = 0, ibv_flow* flow = nullptr) {
    ibv_counter_attach_attr to{.counter_desc = ibv_counter_description(what), .index = index, .comp_mask = mask};
    return ibv_attach_counters_point_flow(counters, &to, flow);
  };
  EXPECT_EQ(attach(IBV_COUNTER_PACKETS, 1), 0);
  EXPECT_EQ(attach(IBV_COUNTER_BYTES, 0), 0);
  EXPECT_EQ(attach(IBV_COUNTER_BYTES, 2), 0);
  EXPECT_EQ(attach(IBV_COUNTER_PACKETS, 2), 0) << "one index may be several's";
  EXPECT_EQ(attach(IBV_COUNTER_PACKETS, 1, 1), EINVAL);
  EXPECT_EQ(attach(3, 1), EOPNOTSUPP);

  std::uint64_t values[4] = {9, 9, 9, 9};
  EXPECT_EQ(ibv_read_counters(counters, values, 2, 0), EINVAL) << "index 2 is asked for";
  EXPECT_EQ(ibv_read_counters(counters, values, 4, 2), EINVAL);
  EXPECT_EQ(ibv_read_counters(counters, values, 4, IBV_READ_COUNTERS_ATTR_PREFER_CACHED), 0);
  EXPECT_THAT(values, ElementsAre(300, 3, 303, 0));

  ibv_flow_spec_counter_action count{};
  count.counters = counters;
  Rule rule;
  rule.add(IBV_FLOW_SPEC_ACTION_COUNT, count);
  ibv_flow* flow = ibv_create_flow(qp, &rule.attributes());
  ASSERT_NE(flow, nullptr);
  EXPECT_EQ(attach(IBV_COUNTER_PACKETS, 1), EBUSY);
  EXPECT_EQ(attach(IBV_COUNTER_PACKETS, 1, 0, flow), EOPNOTSUPP);
  port_.refused[abi::CommandOpcode::destroy_counter] = EBUSY;
  EXPECT_EQ(ibv_destroy_counters(counters), EBUSY);
  port_.refused.clear();
  EXPECT_EQ(ibv_destroy_flow(flow), 0);
  EXPECT_EQ(attach(IBV_COUNTER_PACKETS, 3), 0);

  ibv_context* other = open();
  counters->context = other;
  EXPECT_EQ(refusal_of_flow(qp, rule), EINVAL);
  EXPECT_EQ(attach(IBV_COUNTER_PACKETS, 1), ENOENT);
  EXPECT_EQ(ibv_read_counters(counters, values, 4, 0), ENOENT);
  EXPECT_EQ(ibv_destroy_counters(counters), ENOENT);
  counters->context = context_;
  EXPECT_EQ(ibv_close_device(other), 0);
  EXPECT_EQ(ibv_destroy_counters(counters), 0);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

// A program's remaining objects are destroyed before the objects that they use.
TEST_F(RawVerbsTest, AClosedContextTakesAllWithIt) {
  ibv_context* context = open();
  std::swap(context, context_);
  ibv_pd* pd = ibv_alloc_pd(context_);
  ibv_cq* cq = ibv_create_cq(context_, 4, nullptr, nullptr, 0);
  std::swap(pd, pd_);
  std::swap(cq, cq_);
  auto scaling = scaling_attributes(make_table({make_wq()}));
  ibv_qp* qp = ibv_create_qp_ex(context_, &scaling);
  ASSERT_NE(qp, nullptr);
  Rule rule;
  ASSERT_NE(ibv_create_flow(qp, &rule.attributes()), nullptr);
  ibv_counters_init_attr none{};
  ASSERT_NE(ibv_create_counters(context_, &none), nullptr);
  port_.commands.clear();
  EXPECT_EQ(ibv_close_device(context_), 0);
  std::vector<abi::CommandOpcode> order;
  for (const auto& input : port_.commands)
    order.push_back(abi::CommandOpcode(std::uint16_t(provider::decode<abi::CommandHeader>(input).opcode)));
  using enum abi::CommandOpcode;
  EXPECT_THAT(order, ElementsAre(destroy_flow, destroy_counter, destroy_rss, destroy_qp, destroy_cq));
  context_ = context;
  pd_ = pd;
  cq_ = cq;
}

class WithoutRawTest : public RawVerbsTest {
 protected:
  WithoutRawTest() : RawVerbsTest(abi::feature::kRc) {}
};

TEST_F(WithoutRawTest, AllIsRefused) {
  ibv_qp* connected = make_qp(IBV_QPT_RC);
  EXPECT_EQ(refusal_of_qp([](auto&) {}), EOPNOTSUPP);
  EXPECT_EQ(refusal_of_wq([](auto&) {}), EOPNOTSUPP);
  EXPECT_EQ(make_table({nullptr}), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(refusal_of_flow(connected, Rule()), EOPNOTSUPP);
  ibv_counters_init_attr none{};
  errno = 0;
  EXPECT_EQ(ibv_create_counters(context_, &none), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  for (const auto field : {IBV_WC_EX_WITH_FLOW_TAG, IBV_WC_EX_WITH_CVLAN}) {
    ibv_cq_init_attr_ex wanted{.cqe = 8, .wc_flags = std::uint64_t(field)};
    errno = 0;
    EXPECT_EQ(ibv_create_cq_ex(context_, &wanted), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
  }
  EXPECT_EQ(refusal_of_qp([](auto& wanted) { ask_flags(wanted, IBV_QP_CREATE_SCATTER_FCS); }, IBV_QPT_RC), EOPNOTSUPP);
  auto wr = segmented();
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(move(connected, IBV_QPS_ERR), 0);
  EXPECT_EQ(ibv_post_send(connected, &wr, &bad), EINVAL);
  ibv_device_attr_ex device;
  ASSERT_EQ(ibv_query_device_ex(context_, nullptr, &device), 0);
  EXPECT_EQ(device.rss_caps.supported_qpts, 0u);
  EXPECT_EQ(device.max_wq_type_rq, 0u);
  EXPECT_EQ(device.raw_packet_caps, 0u);
  EXPECT_EQ(device.tso_caps.supported_qpts, 0u);
  EXPECT_EQ(device.tso_caps.max_tso, 0u);
  EXPECT_EQ(device.device_cap_flags_ex & IBV_DEVICE_RAW_SCATTER_FCS, 0u);
  EXPECT_FALSE(device.orig_attr.device_cap_flags & (IBV_DEVICE_RAW_IP_CSUM | IBV_DEVICE_MANAGED_FLOW_STEERING));
  EXPECT_EQ(ibv_destroy_qp(connected), 0);
}

}  // namespace

}  // namespace rnicsim
