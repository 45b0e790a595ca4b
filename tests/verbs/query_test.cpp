// SPDX-License-Identifier: Apache-2.0
// Device attributes: every meaningful field has its value, and unsupported features are not reported.
#include <cstring>

#include "model/nic/capability_params.h"
#include "model/nic/nic.h"
#include "model/nic/packets/receive/steering.h"
#include "model/nic/personality/commands.h"
#include "model/roce/icrc.h"
#include "sim/adapter.h"
#include "tests/verbs/rc_pair.h"

namespace rnicsim::testing {
namespace {

constexpr std::size_t kEthernetBytes = 14, kBth = kEthernetBytes + 20 + 8, kIcrcBytes = 4;

class Query : public RcPair {
 protected:
  // Delivers a frame of h1 again, with another P_Key and a valid ICRC.
  void deliver_with_pkey(std::vector<std::byte> bytes, std::uint16_t pkey) {
    bytes[kBth + 2] = std::byte(pkey >> 8);
    bytes[kBth + 3] = std::byte(pkey);
    const std::span whole(bytes);
    const auto crc = roce::icrc(whole.first(bytes.size() - kIcrcBytes).subspan(kEthernetBytes), {}, {});
    for (std::size_t i = 0; i < kIcrcBytes; ++i) bytes[bytes.size() - kIcrcBytes + i] = std::byte(crc >> (8 * i));
    host(1).nic().blocks().steering.receive({Frame::of(Payload::copy_of(whole))}, {});
    pass(1, Duration{10'000'000});
  }
};

TEST_F(Query, RawPacketsAreSaidWhereTheyAre) {
  const bool raw = capabilities().raw;
  const auto atomic_write = capabilities().atomic_write ? 1ull << 40 : 0;
  run_alone([=](Endpoint& end) {
    ibv_device_attr_ex device;
    ASSERT_EQ(ibv_query_device_ex(end.context, nullptr, &device), 0);
    const auto& plain = device.orig_attr;
    EXPECT_EQ(device.rss_caps.supported_qpts, raw ? 1u << IBV_QPT_RAW_PACKET : 0u);
    EXPECT_EQ(device.rss_caps.max_rwq_indirection_tables > 0, raw);
    EXPECT_EQ(device.rss_caps.max_rwq_indirection_table_size > 0, raw);
    EXPECT_EQ(device.rss_caps.rx_hash_function, raw ? IBV_RX_HASH_FUNC_TOEPLITZ : 0);
    EXPECT_EQ(device.max_wq_type_rq, raw ? std::uint32_t(plain.max_qp) : 0u);
    for (const auto cap :
         {IBV_RAW_PACKET_CAP_IP_CSUM, IBV_RAW_PACKET_CAP_CVLAN_STRIPPING, IBV_RAW_PACKET_CAP_SCATTER_FCS})
      EXPECT_EQ((device.raw_packet_caps & cap) != 0, raw) << cap;
    EXPECT_FALSE(device.raw_packet_caps & IBV_RAW_PACKET_CAP_DELAY_DROP);
    EXPECT_EQ(device.tso_caps.supported_qpts, raw ? 1u << IBV_QPT_RAW_PACKET : 0u);
    EXPECT_EQ(device.tso_caps.max_tso > 0, raw);
    EXPECT_EQ(device.device_cap_flags_ex,
              plain.device_cap_flags | atomic_write |
                  (raw ? IBV_DEVICE_RAW_SCATTER_FCS | IBV_DEVICE_PCI_WRITE_END_PADDING : 0));
    EXPECT_EQ((plain.device_cap_flags & IBV_DEVICE_RAW_IP_CSUM) != 0, raw);
    EXPECT_EQ((plain.device_cap_flags & IBV_DEVICE_MANAGED_FLOW_STEERING) != 0, raw);
  });
}

TEST_F(Query, NothingIsSaidThatIsNotDone) {
  run_alone([this](Endpoint& end) {
    ibv_device_attr_ex device;
    std::memset(static_cast<void*>(&device), 0xff, sizeof device);
    ASSERT_EQ(ibv_query_device_ex(end.context, nullptr, &device), 0);
    EXPECT_EQ(device.comp_mask, 0u);
    const auto features = capabilities().features();
    EXPECT_EQ(device.xrc_odp_caps != 0, features.xrc && features.on_demand);
    const auto rate = features.pacing ? capabilities().max_rate_limit : 0;
    EXPECT_EQ(device.packet_pacing_caps.qp_rate_limit_max, rate);
    EXPECT_EQ(device.tm_caps.max_num_tags, 0u);
    EXPECT_EQ(device.pci_atomic_caps.fetch_add, 0u);
    EXPECT_EQ(device.phys_port_cnt_ex, 1u);
    EXPECT_EQ(device.completion_timestamp_mask, ~0ull);
    EXPECT_GT(device.hca_core_clock, 0u);
    const ibv_device_attr& plain = device.orig_attr;
    for (const int zero : {plain.max_ee, plain.max_rdd, plain.max_raw_ipv6_qp, plain.max_raw_ethy_qp, plain.max_fmr,
                           plain.max_map_per_fmr, plain.max_ee_rd_atom, plain.max_ee_init_rd_atom})
      EXPECT_EQ(zero, 0);
    EXPECT_EQ(plain.max_pkeys, 1);
    EXPECT_TRUE(plain.device_cap_flags & IBV_DEVICE_BAD_PKEY_CNTR);
    EXPECT_EQ((plain.device_cap_flags & IBV_DEVICE_XRC) != 0, capabilities().features().xrc);
  });
}

TEST_F(Query, AnOlderProgramGetsItsPart) {
  run_alone([](Endpoint& end) {
    verbs_context* context = verbs_get_ctx(end.context);
    ibv_device_attr_ex device;
    std::memset(static_cast<void*>(&device), 0xff, sizeof device);
    const std::size_t size = offsetof(ibv_device_attr_ex, tso_caps);
    ASSERT_EQ(context->query_device_ex(end.context, nullptr, &device, size), 0);
    EXPECT_GT(device.hca_core_clock, 0u);
    EXPECT_EQ(device.tso_caps.max_tso, ~0u);  // behind the end of the old struct
    EXPECT_EQ(context->query_device_ex(end.context, nullptr, &device, sizeof(ibv_device_attr) - 1), EINVAL);
    ibv_query_device_ex_input input{.comp_mask = 1};
    EXPECT_EQ(ibv_query_device_ex(end.context, &input, &device), EINVAL);
  });
}

TEST_F(Query, TheRawClockCounts) {
  run_alone([&](Endpoint& end) {
    ibv_device_attr_ex device{};
    ASSERT_EQ(ibv_query_device_ex(end.context, nullptr, &device), 0);
    const auto read = [&] {
      ibv_values_ex values{};
      values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK | 1u << 7;
      EXPECT_EQ(ibv_query_rt_values_ex(end.context, &values), 0);
      EXPECT_EQ(values.comp_mask, std::uint32_t(IBV_VALUES_MASK_RAW_CLOCK));  // unknown bits are not reported
      return std::uint64_t(values.raw_clock.tv_nsec);
    };
    const auto first = read();
    const auto began = now();
    pass(0, Duration{1'000'000'000});
    const auto second = read();
    const auto ticks = std::uint64_t((now() - began).ps) * device.hca_core_clock / 1'000'000'000;
    EXPECT_NEAR(double(second - first), double(ticks), 2);
    ibv_values_ex none{};
    EXPECT_EQ(ibv_query_rt_values_ex(end.context, &none), 0);
    EXPECT_EQ(none.comp_mask, 0u);
  });
}

// A packet with a P_Key that is not in the table is dropped and counted. A limited member's P_Key is the same
// partition.
TEST_F(Query, PkeyViolationsAreCounted) {
  run_connected(
      [&](Endpoint& end) {
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, 8)), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        meet(0);
        meet(0);
      },
      [&](Endpoint& end) {
        meet(1);
        const auto violations = [&] {
          ibv_port_attr port{};
          EXPECT_EQ(ibv_query_port(end.context, 1, &port), 0);
          EXPECT_EQ(port.qkey_viol_cntr, 0u);
          return port.bad_pkey_cntr;
        };
        EXPECT_EQ(violations(), 0u);
        const auto frame = wire().front().bytes;  // the request; as a repeated frame it is a duplicate
        const auto frames = wire().size();
        deliver_with_pkey(frame, 0xfffe);
        deliver_with_pkey(frame, 0x8001);
        EXPECT_EQ(violations(), 2u);
        EXPECT_EQ(wire().size(), frames);
        deliver_with_pkey(frame, 0x7fff);
        EXPECT_EQ(violations(), 2u);
        EXPECT_EQ(wire().size(), frames + 1);  // acknowledged
        meet(1);
      });
}

TEST_F(Query, ThePort) {
  run_alone([](Endpoint& end) {
    ibv_port_attr port{};
    ASSERT_EQ(ibv_query_port(end.context, 1, &port), 0);
    EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
    EXPECT_EQ(port.link_layer, IBV_LINK_LAYER_ETHERNET);
    EXPECT_EQ(port.flags, IBV_QPF_GRH_REQUIRED);
    EXPECT_EQ(port.sm_lid, 0);
    EXPECT_EQ(port.sm_sl, 0);
    EXPECT_EQ(port.lmc, 0);
    EXPECT_EQ(port.pkey_tbl_len, 1);
    EXPECT_EQ(port.max_vl_num, 1);
    EXPECT_GT(port.gid_tbl_len, 0);
    EXPECT_EQ(ibv_query_port(end.context, 0, &port), EINVAL);
    EXPECT_EQ(ibv_query_port(end.context, 2, &port), EINVAL);
  });
}

TEST_F(Query, GidsAndPkeys) {
  run_alone([](Endpoint& end) {
    ibv_gid_entry entries[64];
    const auto count = ibv_query_gid_table(end.context, entries, std::size(entries), 0);
    ASSERT_GT(count, 0);
    for (ssize_t i = 0; i < count; ++i) {
      ibv_gid_entry entry;
      ASSERT_EQ(ibv_query_gid_ex(end.context, entries[i].port_num, entries[i].gid_index, &entry, 0), 0);
      EXPECT_EQ(std::memcmp(&entry.gid, &entries[i].gid, sizeof entry.gid), 0);
      EXPECT_EQ(entry.gid_type, entries[i].gid_type);
    }
    EXPECT_EQ(ibv_query_gid_table(end.context, entries, 1, 0), -EINVAL);  // there are more entries
    EXPECT_EQ(ibv_query_gid_table(end.context, entries, 1, 1), -EOPNOTSUPP);
    ibv_gid_entry entry;
    EXPECT_EQ(ibv_query_gid_ex(end.context, 1, 10'000, &entry, 0), EINVAL);
    EXPECT_EQ(ibv_query_gid_ex(end.context, 9, 0, &entry, 0), EINVAL);
    __be16 pkey = 0;
    EXPECT_EQ(ibv_query_pkey(end.context, 1, 0, &pkey), 0);
    EXPECT_EQ(pkey, 0xffff);
    EXPECT_EQ(ibv_query_pkey(end.context, 1, 1, &pkey), -1);
    EXPECT_EQ(ibv_get_pkey_index(end.context, 1, pkey), 0);
    EXPECT_EQ(ibv_get_pkey_index(end.context, 1, 0x1234), -1);
  });
}

TEST(Names, OfEveryValue) {
  EXPECT_STREQ(ibv_wc_status_str(IBV_WC_RNR_RETRY_EXC_ERR), "RNR retry counter exceeded");
  EXPECT_STREQ(ibv_event_type_str(IBV_EVENT_QP_LAST_WQE_REACHED), "last WQE reached");
  for (int event = IBV_EVENT_CQ_ERR; event <= IBV_EVENT_WQ_FATAL; ++event)
    EXPECT_STRNE(ibv_event_type_str(ibv_event_type(event)), "unknown") << event;
  for (int status = IBV_WC_SUCCESS; status <= IBV_WC_TM_RNDV_INCOMPLETE; ++status)
    EXPECT_STRNE(ibv_wc_status_str(ibv_wc_status(status)), "unknown") << status;
  EXPECT_STREQ(ibv_event_type_str(ibv_event_type(99)), "unknown");
  EXPECT_STREQ(ibv_node_type_str(IBV_NODE_CA), "InfiniBand channel adapter");
  EXPECT_STREQ(ibv_port_state_str(IBV_PORT_ACTIVE), "active");
}

TEST(Rates, ThereAndBack) {
  for (int rate = IBV_RATE_2_5_GBPS; rate <= IBV_RATE_1200_GBPS; ++rate) {
    const int mult = ibv_rate_to_mult(ibv_rate(rate)), mbps = ibv_rate_to_mbps(ibv_rate(rate));
    ASSERT_GT(mult, 0) << rate;
    EXPECT_EQ(mult_to_ibv_rate(mult), rate);
    EXPECT_EQ(mbps_to_ibv_rate(mbps), rate);
  }
  EXPECT_EQ(ibv_rate_to_mult(IBV_RATE_MAX), -1);
  EXPECT_EQ(ibv_rate_to_mbps(IBV_RATE_MAX), -1);
  EXPECT_EQ(mult_to_ibv_rate(3), IBV_RATE_MAX);
  EXPECT_EQ(mbps_to_ibv_rate(1), IBV_RATE_MAX);
}

}  // namespace
}  // namespace rnicsim::testing
