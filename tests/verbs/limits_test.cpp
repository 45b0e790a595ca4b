// SPDX-License-Identifier: Apache-2.0
// A process that has the device to itself can create exactly as many objects as the device reports.
#include <algorithm>
#include <vector>

#include "model/nic/capability_params.h"
#include "tests/verbs/rc_pair.h"

namespace rnicsim::testing {
namespace {

// A context without objects.
struct Nothing {
  Nothing() : list(ibv_get_device_list(nullptr)), context(ibv_open_device(list[0])) {
    ibv_free_device_list(list);
    EXPECT_EQ(ibv_query_device(context, &limits), 0);
  }
  ~Nothing() { EXPECT_EQ(ibv_close_device(context), 0); }
  Nothing(const Nothing&) = delete;
  Nothing& operator=(const Nothing&) = delete;

  ibv_device** list;
  ibv_context* context;
  ibv_device_attr limits{};
};

ibv_qp* make_qp(ibv_pd* pd, ibv_cq* cq, const ibv_qp_cap& cap, ibv_qp_type type = IBV_QPT_RC,
                std::uint16_t tso_header = 0) {
  ibv_qp_init_attr_ex wanted{};
  wanted.send_cq = wanted.recv_cq = cq;
  wanted.cap = cap;
  wanted.qp_type = type;
  wanted.comp_mask = IBV_QP_INIT_ATTR_PD | (tso_header != 0 ? IBV_QP_INIT_ATTR_MAX_TSO_HEADER : 0);
  wanted.pd = pd;
  wanted.max_tso_header = tso_header;
  return ibv_create_qp_ex(pd->context, &wanted);
}

// Creates objects until `make` fails, destroys them, and repeats that once.
template <class Make, class Destroy>
void expect_most(const char* what, int most, Make make, Destroy destroy) {
  SCOPED_TRACE(what);
  for (int round = 0; round < 2; ++round) {
    std::vector<decltype(make())> made;
    while (auto* object = make()) made.push_back(object);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(int(made.size()), most);
    for (auto* object : made) EXPECT_EQ(destroy(object), 0);
  }
}

class Limits : public RcPair {
 protected:
  explicit Limits(std::vector<std::string> sets = {}) : RcPair(sets) {}

  void run_with(const std::function<void(Nothing&)>& body) {
    run(
        [&] {
          Nothing nothing;
          body(nothing);
        },
        [] {});
  }
};

class FewOfAll : public Limits {
 protected:
  FewOfAll()
      : Limits({"nic.capabilities.max_qp=100", "nic.capabilities.max_cq=20", "nic.capabilities.max_mr=40",
                "nic.capabilities.max_pd=10", "nic.capabilities.max_srq=12", "nic.capabilities.max_ah=15",
                "nic.capabilities.max_multicast_groups=6", "nic.capabilities.max_group_qps=3",
                "nic.capabilities.max_attached_qps=10"}) {}
};

TEST_F(FewOfAll, AsManyObjectsAsItSays) {
  run_with([](Nothing& of) {
    std::array<char, 64> memory{};
    expect_most(
        "PDs", of.limits.max_pd, [&] { return ibv_alloc_pd(of.context); }, ibv_dealloc_pd);
    EXPECT_EQ(of.limits.max_pd, 10);
    expect_most(
        "CQs", of.limits.max_cq, [&] { return ibv_create_cq(of.context, 1, nullptr, nullptr, 0); }, ibv_destroy_cq);
    EXPECT_GT(of.limits.max_cq, 15);
    ibv_pd* pd = ibv_alloc_pd(of.context);
    ibv_cq* cq = ibv_create_cq(of.context, 4, nullptr, nullptr, 0);
    expect_most(
        "QPs", of.limits.max_qp,
        [&] {
          return make_qp(pd, cq, {1, 1, 1, 1, 0});
        },
        ibv_destroy_qp);
    EXPECT_GT(of.limits.max_qp, 30);
    expect_most(
        "MRs", of.limits.max_mr, [&] { return ibv_reg_mr(pd, memory.data(), memory.size(), 0); }, ibv_dereg_mr);
    EXPECT_GT(of.limits.max_mr, 30);
    expect_most(
        "MWs", of.limits.max_mw, [&] { return ibv_alloc_mw(pd, IBV_MW_TYPE_1); }, ibv_dealloc_mw);
    ibv_srq_init_attr shared{};
    shared.attr = {1, 1, 0};
    expect_most(
        "SRQs", of.limits.max_srq, [&] { return ibv_create_srq(pd, &shared); }, ibv_destroy_srq);
    EXPECT_EQ(of.limits.max_srq, 12);
    ibv_ah_attr way{};
    way.is_global = 1;
    way.port_num = 1;
    way.grh.sgid_index = 1;
    EXPECT_EQ(ibv_query_gid(of.context, 1, 1, &way.grh.dgid), 0);
    expect_most(
        "AHs", of.limits.max_ah, [&] { return ibv_create_ah(pd, &way); }, ibv_destroy_ah);
    EXPECT_EQ(of.limits.max_ah, 15);
  });
}

TEST_F(FewOfAll, AsManyMembersOfGroupsAsItSays) {
  run_with([](Nothing& of) {
    ibv_pd* pd = ibv_alloc_pd(of.context);
    ibv_cq* cq = ibv_create_cq(of.context, 4, nullptr, nullptr, 0);
    std::vector<ibv_qp*> qps;
    for (int i = 0; i < 12; ++i) qps.push_back(make_qp(pd, cq, {1, 1, 1, 1, 0}, IBV_QPT_UD));
    const auto join = [](ibv_qp* qp, int group) {
      ibv_gid gid{};
      gid.raw[0] = 0xff, gid.raw[1] = 0x0e, gid.raw[15] = std::uint8_t(group);
      return ibv_attach_mcast(qp, &gid, 0) == 0;
    };
    int groups = 0, members = 1, total = 0;
    while (join(qps[0], groups)) ++groups;
    while (join(qps[std::size_t(members)], 0)) ++members;
    EXPECT_EQ(groups, of.limits.max_mcast_grp);
    EXPECT_EQ(members, of.limits.max_mcast_qp_attach);
    for (total = groups + members - 1; total < 100; ++total)
      if (!join(qps[std::size_t(1 + total % 2)], 1 + (total - groups - members + 1) / 2)) break;
    EXPECT_EQ(total, of.limits.max_total_mcast_qp_attach);
  });
}

// Limits that bound each other: the smallest one counts.
class BoundByOthers : public Limits {
 protected:
  BoundByOthers()
      : Limits({"nic.capabilities.max_qp=66", "nic.capabilities.max_group_qps=50",
                "nic.capabilities.max_multicast_groups=3", "nic.capabilities.max_attached_qps=500",
                "nic.capabilities.max_rd_atomic=128"}) {}
};
TEST_F(BoundByOthers, TheLeastOfThemCounts) {
  run_with([](Nothing& of) {
    EXPECT_EQ(of.limits.max_qp, 2);
    EXPECT_EQ(of.limits.max_mcast_qp_attach, 2);
    EXPECT_EQ(of.limits.max_mcast_grp, 3);
    EXPECT_EQ(of.limits.max_total_mcast_qp_attach, 6);
    EXPECT_EQ(of.limits.max_res_rd_atom, 256);
  });
}

class FewContexts : public Limits {
 protected:
  FewContexts() : Limits({"nic.capabilities.max_qp=64", "nic.capabilities.max_mr=1"}) {}
};
TEST_F(FewContexts, NoneIsLeft) {
  run_with([](Nothing& of) {
    EXPECT_EQ(of.limits.max_qp, 0);
    EXPECT_EQ(of.limits.max_mr, 0);
    ibv_pd* pd = ibv_alloc_pd(of.context);
    ibv_cq* cq = ibv_create_cq(of.context, 4, nullptr, nullptr, 0);
    EXPECT_EQ(make_qp(pd, cq, {1, 1, 1, 1, 0}), nullptr);
    EXPECT_EQ(ibv_reg_mr(pd, &of, sizeof of, 0), nullptr);
  });
}

class LargeQueues : public Limits, public ::testing::WithParamInterface<std::vector<std::string>> {
 protected:
  LargeQueues() : Limits(GetParam()) {}
};

// All maxima at once: work requests, segments, inline data, TSO headers.
TEST_P(LargeQueues, AreAsLargeAsItSays) {
  run_with([&](Nothing& of) {
    const ibv_device_attr& limits = of.limits;
    ibv_pd* pd = ibv_alloc_pd(of.context);
    ibv_cq* cq = ibv_create_cq(of.context, 4, nullptr, nullptr, 0);
    ASSERT_GT(limits.max_qp_wr, 0);
    const ibv_qp_cap most{std::uint32_t(limits.max_qp_wr), std::uint32_t(limits.max_qp_wr),
                          std::uint32_t(limits.max_sge), std::uint32_t(limits.max_sge), capabilities().max_inline};
    std::vector<ibv_qp_type> types{IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
    if (capabilities().raw) types.push_back(IBV_QPT_RAW_PACKET);
    for (const auto type : types) {
      const std::uint16_t headers = type == IBV_QPT_RAW_PACKET ? nic::CapabilityParams::kMostTsoHeader : 0;
      for (std::uint32_t sges = 1; sges <= most.max_send_sge; ++sges) {
        ibv_qp_cap cap = most;
        cap.max_send_sge = cap.max_recv_sge = sges;
        ibv_qp* qp = make_qp(pd, cq, cap, type, headers);
        ASSERT_NE(qp, nullptr) << "type " << type << ", segments " << sges;
        ibv_qp_attr is{};
        ibv_qp_init_attr initial{};
        EXPECT_EQ(ibv_query_qp(qp, &is, IBV_QP_CAP, &initial), 0);
        EXPECT_GE(is.cap.max_send_wr, cap.max_send_wr);
        EXPECT_GE(is.cap.max_recv_wr, cap.max_recv_wr);
        EXPECT_GE(is.cap.max_send_sge, cap.max_send_sge);
        EXPECT_GE(is.cap.max_inline_data, cap.max_inline_data);
        EXPECT_EQ(ibv_destroy_qp(qp), 0);
      }
    }
    ibv_srq_init_attr shared{};
    shared.attr = {std::uint32_t(limits.max_srq_wr), std::uint32_t(limits.max_srq_sge), 0};
    ibv_srq* srq = ibv_create_srq(pd, &shared);
    ASSERT_NE(srq, nullptr);
    EXPECT_EQ(ibv_destroy_srq(srq), 0);
    ibv_cq* large = ibv_create_cq(of.context, limits.max_cqe, nullptr, nullptr, 0);
    ASSERT_NE(large, nullptr);
    EXPECT_EQ(ibv_create_cq(of.context, limits.max_cqe + 1, nullptr, nullptr, 0), nullptr);
    EXPECT_EQ(ibv_destroy_cq(large), 0);
  });
}

using Sets = std::vector<std::string>;
INSTANTIATE_TEST_SUITE_P(Devices, LargeQueues,
                         ::testing::Values(Sets{"nic.capabilities.max_cqe=100000"},
                                           Sets{"nic.capabilities.max_cqe=100000", "nic.capabilities.max_sge=1",
                                                "nic.capabilities.max_inline=0"},
                                           Sets{"nic.capabilities.max_cqe=100000", "nic.capabilities.max_sge=2",
                                                "nic.capabilities.max_inline=956"},
                                           Sets{"nic.capabilities.max_cqe=100000", "nic.capabilities.max_sge=60",
                                                "nic.capabilities.max_qp_wr=1000",
                                                "nic.capabilities.max_srq_wr=1000"}));

}  // namespace
}  // namespace rnicsim::testing
