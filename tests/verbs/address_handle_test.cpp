// SPDX-License-Identifier: Apache-2.0
// Address handles: their fields, refusals, and destinations.
#include <cstring>

#include "tests/verbs/rc_pair.h"
#include "verbs/ibverbs/objects.h"

namespace rnicsim::testing {
namespace {

using Mac = std::array<std::uint8_t, 6>;

ibv_gid ipv4_gid(std::array<std::uint8_t, 4> address) {
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xff;
  std::ranges::copy(address, gid.raw + 12);
  return gid;
}

ibv_ah_attr path_to(const ibv_gid& gid, std::uint8_t index = 1) {
  ibv_ah_attr path{};
  path.is_global = 1;
  path.port_num = 1;
  path.grh.dgid = gid;
  path.grh.sgid_index = index;
  return path;
}

const ibv_gid kH1 = ipv4_gid({10, 0, 1, 1});
constexpr Mac kMacOfH1{2, 0, 0, 0, 1, 1};

class AddressHandle : public RcPair {
 protected:
  using RcPair::RcPair;

  static void refuse(Endpoint& end, ibv_ah_attr path, int error) {
    errno = 0;
    EXPECT_EQ(ibv_create_ah(end.pd, &path), nullptr);
    EXPECT_EQ(errno, error);
  }
  static Mac mac_of(const ibv_ah* ah) { return std::to_array(verbs::Ah::of(ah).path.remote_mac); }
};

TEST_F(AddressHandle, KnowsTheWholeWay) {
  run_alone([](Endpoint& end) {
    auto path = path_to(kH1);
    path.sl = 3;
    path.static_rate = IBV_RATE_100_GBPS;
    path.grh.flow_label = 0x54321;
    path.grh.traffic_class = 0x68;
    path.grh.hop_limit = 7;
    ibv_ah* ah = ibv_create_ah(end.pd, &path);
    ASSERT_NE(ah, nullptr);
    EXPECT_EQ(ah->pd, end.pd);
    EXPECT_EQ(ah->context, end.context);
    const auto& way = verbs::Ah::of(ah).path;
    EXPECT_EQ(std::memcmp(way.remote_gid, kH1.raw, 16), 0);
    EXPECT_EQ(mac_of(ah), kMacOfH1);
    EXPECT_EQ(way.sgid_index, 1);
    EXPECT_EQ(way.service_level, 3);
    EXPECT_EQ(way.static_rate, IBV_RATE_100_GBPS);
    EXPECT_EQ(way.flow_label, 0x54321u);
    EXPECT_EQ(way.traffic_class, 0x68);
    EXPECT_EQ(way.hop_limit, 7);
    EXPECT_EQ(ibv_destroy_ah(ah), 0);
  });
}

TEST_F(AddressHandle, LeadsToThisHostAndToGroups) {
  run_alone([](Endpoint& end) {
    ibv_gid ipv6{};
    ipv6.raw[0] = 0xff, ipv6.raw[1] = 0x0e, ipv6.raw[12] = 1, ipv6.raw[15] = 4;
    const std::pair<ibv_gid, Mac> ways[] = {{end.address().gid, {2, 0, 0, 0, 0, 1}},
                                            {ipv4_gid({239, 129, 2, 3}), {1, 0, 0x5e, 1, 2, 3}},
                                            {ipv6, {0x33, 0x33, 1, 0, 0, 4}}};
    for (const auto& [gid, mac] : ways) {
      auto path = path_to(gid);
      ibv_ah* ah = ibv_create_ah(end.pd, &path);
      ASSERT_NE(ah, nullptr);
      EXPECT_EQ(mac_of(ah), mac);
      EXPECT_EQ(ibv_destroy_ah(ah), 0);
    }
  });
}

TEST_F(AddressHandle, RefusesWhatLeadsNowhere) {
  run_alone([](Endpoint& end) {
    for (const std::uint8_t port : {0, 2}) {
      auto path = path_to(kH1);
      path.port_num = port;
      refuse(end, path, EINVAL);
    }
    auto local = path_to(kH1);
    local.is_global = 0;
    for (const std::uint16_t lid : {0, 1, 2}) {
      local.dlid = lid;
      refuse(end, local, EINVAL);
    }
    refuse(end, path_to(kH1, 3), EINVAL);    // an empty entry
    refuse(end, path_to(kH1, 200), EINVAL);  // no entry
    auto rate = path_to(kH1);
    rate.static_rate = 200;
    refuse(end, rate, EINVAL);
    refuse(end, path_to(ipv4_gid({10, 77, 0, 1})), EHOSTUNREACH);  // no route
  });
}

// The call waits for the neighbour's answer.
class SilentNeighbour : public AddressHandle {
 protected:
  SilentNeighbour() : AddressHandle({"host.cm.neighbour_timeout=100ms"}) {}
};

TEST_F(SilentNeighbour, TakesItsTime) {
  run_alone([&](Endpoint& end) {
    constexpr Duration kWait{100'000'000'000}, kCalls{100'000'000};
    ibv_gid link_local{};
    link_local.raw[0] = 0xfe, link_local.raw[1] = 0x80, link_local.raw[15] = 99;
    for (const ibv_gid& gid : {ipv4_gid({10, 0, 77, 1}), link_local}) {
      const auto before = now();
      refuse(end, path_to(gid), ETIMEDOUT);
      settle(0);
      EXPECT_GE(now() - before, kWait);
      EXPECT_LT(now() - before, kWait + kCalls);
    }
    end.to_init();
    ibv_qp_attr ready{};
    ready.qp_state = IBV_QPS_RTR;
    ready.path_mtu = IBV_MTU_1024;
    ready.dest_qp_num = 7;
    ready.max_dest_rd_atomic = 1;
    ready.min_rnr_timer = 12;
    ready.ah_attr = path_to(ipv4_gid({10, 0, 77, 1}));
    constexpr int kReady = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    settle(0);
    const auto before = now();
    EXPECT_EQ(ibv_modify_qp(end.qp, &ready, kReady), ETIMEDOUT);
    settle(0);
    EXPECT_GE(now() - before, kWait);
    EXPECT_LT(now() - before, kWait + kCalls);
    EXPECT_EQ(end.state(), IBV_QPS_INIT);
    ready.ah_attr = path_to(kH1);
    EXPECT_EQ(ibv_modify_qp(end.qp, &ready, kReady), 0);
  });
}

class LidPaths : public AddressHandle {
 protected:
  LidPaths() : AddressHandle({"host.lid_paths=true"}) {}
};

TEST_F(LidPaths, ALidLeadsToItsPort) {
  run_alone([](Endpoint& end) {
    ibv_port_attr port;
    ASSERT_EQ(ibv_query_port(end.context, 1, &port), 0);
    EXPECT_NE(port.lid, 0);
    ibv_ah_attr path{};
    path.port_num = 1;
    path.dlid = port.lid;
    ibv_ah* ah = ibv_create_ah(end.pd, &path);
    ASSERT_NE(ah, nullptr);
    EXPECT_EQ(mac_of(ah), (Mac{2, 0, 0, 0, 0, 1}));
    EXPECT_EQ(ibv_destroy_ah(ah), 0);
    path.dlid = 0x77;
    refuse(end, path, EINVAL);
  });
}

TEST_F(AddressHandle, KeepsItsDomainBusy) {
  run_alone([](Endpoint& end) {
    ibv_pd* pd = ibv_alloc_pd(end.context);
    auto path = path_to(kH1);
    ibv_ah* first = ibv_create_ah(pd, &path);
    ibv_ah* second = ibv_create_ah(pd, &path);
    EXPECT_EQ(ibv_dealloc_pd(pd), EBUSY);
    EXPECT_EQ(ibv_destroy_ah(first), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd), EBUSY);
    EXPECT_EQ(ibv_destroy_ah(second), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
  });
}

TEST_F(AddressHandle, IsFoundByItsHandle) {
  run_alone([](Endpoint& end) {
    auto path = path_to(kH1);
    ibv_ah* ah = ibv_create_ah(end.pd, &path);
    ah->handle += 100;
    EXPECT_EQ(ibv_destroy_ah(ah), ENOENT);
    ah->handle -= 100;
    EXPECT_EQ(ibv_destroy_ah(ah), 0);

    ibv_pd* pd = ibv_alloc_pd(end.context);
    pd->handle += 100;
    errno = 0;
    EXPECT_EQ(ibv_create_ah(pd, &path), nullptr);
    EXPECT_EQ(errno, ENOENT);
    pd->handle -= 100;
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
  });
}

TEST_F(AddressHandle, WhatIsLeftGoesWithTheContext) {
  run_alone([](Endpoint& end) {
    ibv_context* context = ibv_open_device(end.context->device);
    ibv_pd* pd = ibv_alloc_pd(context);
    auto path = path_to(kH1);
    EXPECT_NE(ibv_create_ah(pd, &path), nullptr);
    EXPECT_EQ(ibv_close_device(context), 0);
  });
}

// The GRH area before a datagram's payload, over IPv4.
ibv_grh grh_of_ipv4(std::array<std::uint8_t, 4> from, std::array<std::uint8_t, 4> to, std::uint8_t traffic_class) {
  std::array<std::uint8_t, 40> bytes{};
  bytes[20] = 0x45;
  bytes[21] = traffic_class;
  std::ranges::copy(from, bytes.begin() + 32);
  std::ranges::copy(to, bytes.begin() + 36);
  ibv_grh grh;
  std::memcpy(&grh, bytes.data(), sizeof grh);
  return grh;
}

TEST_F(AddressHandle, FromACompletionLeadsBack) {
  run_alone([](Endpoint& end) {
    ibv_wc wc{};
    wc.wc_flags = IBV_WC_GRH;
    auto grh = grh_of_ipv4({10, 0, 1, 1}, {10, 0, 0, 1}, 0x20);
    ibv_ah* ah = ibv_create_ah_from_wc(end.pd, &wc, &grh, 1);
    ASSERT_NE(ah, nullptr);
    const auto& way = verbs::Ah::of(ah).path;
    EXPECT_EQ(std::memcmp(way.remote_gid, kH1.raw, 16), 0);
    EXPECT_EQ(mac_of(ah), kMacOfH1);
    EXPECT_EQ(way.sgid_index, 1);
    EXPECT_EQ(way.traffic_class, 0x20);
    EXPECT_EQ(ibv_destroy_ah(ah), 0);
  });
}

TEST_F(AddressHandle, FromACompletionThatTellsNoWay) {
  run_alone([](Endpoint& end) {
    ibv_wc wc{};
    auto grh = grh_of_ipv4({10, 0, 1, 1}, {10, 0, 0, 1}, 0);
    errno = 0;
    EXPECT_EQ(ibv_create_ah_from_wc(end.pd, &wc, &grh, 1), nullptr);  // without IBV_WC_GRH
    EXPECT_EQ(errno, EINVAL);
    wc.wc_flags = IBV_WC_GRH;
    auto strange = grh_of_ipv4({10, 0, 1, 1}, {10, 0, 9, 9}, 0);  // not this host's address
    errno = 0;
    EXPECT_EQ(ibv_create_ah_from_wc(end.pd, &wc, &strange, 1), nullptr);
    EXPECT_EQ(errno, EINVAL);
  });
}

TEST_F(AddressHandle, EthernetAddressOfAPath) {
  run_alone([](Endpoint& end) {
    auto path = path_to(kH1);
    Mac mac{};
    std::uint16_t vlan = 0;
    EXPECT_EQ(ibv_resolve_eth_l2_from_gid(end.context, &path, mac.data(), &vlan), 0);
    EXPECT_EQ(mac, kMacOfH1);
    EXPECT_EQ(vlan, 0xffff);
    path = path_to(ipv4_gid({10, 77, 0, 1}));
    EXPECT_EQ(ibv_resolve_eth_l2_from_gid(end.context, &path, mac.data(), &vlan), EHOSTUNREACH);
  });
}

// A connection has exactly one peer QP.
TEST_F(AddressHandle, NoConnectionToAGroup) {
  run_alone([](Endpoint& end) {
    end.to_init();
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTR;
    attributes.ah_attr = path_to(ipv4_gid({239, 1, 1, 1}));
    attributes.path_mtu = IBV_MTU_1024;
    const int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    EXPECT_EQ(ibv_modify_qp(end.qp, &attributes, mask), EINVAL);
  });
}

class FewAddressHandles : public AddressHandle {
 protected:
  FewAddressHandles() : AddressHandle({"nic.capabilities.max_ah=2"}) {}
};

TEST_F(FewAddressHandles, NoMoreThanTheDeviceSays) {
  run_alone([](Endpoint& end) {
    ibv_device_attr device;
    ASSERT_EQ(ibv_query_device(end.context, &device), 0);
    EXPECT_EQ(device.max_ah, 2);
    auto path = path_to(kH1);
    ibv_ah* first = ibv_create_ah(end.pd, &path);
    ibv_ah* second = ibv_create_ah(end.pd, &path);
    refuse(end, path, ENOMEM);
    EXPECT_EQ(ibv_destroy_ah(first), 0);
    first = ibv_create_ah(end.pd, &path);
    EXPECT_NE(first, nullptr);
    EXPECT_EQ(ibv_destroy_ah(first), 0);
    EXPECT_EQ(ibv_destroy_ah(second), 0);
  });
}

}  // namespace
}  // namespace rnicsim::testing
