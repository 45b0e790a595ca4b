// SPDX-License-Identifier: Apache-2.0
// Features that the device lacks return EOPNOTSUPP, which stock programs take for "not supported"; no other errno.
#include "tests/verbs/rc_pair.h"

namespace rnicsim::testing {
namespace {

class Unsupported : public RcPair {
 protected:
  using RcPair::RcPair;
  struct Call {
    const char* name;
    std::function<bool(Endpoint&)> refused;  // true: failed, by the call's kind of result; the test checks errno
  };

  static bool no_qp(Endpoint& end, ibv_qp_type type) {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = end.cq;
    wanted.cap = {1, 1, 1, 1, 0};
    wanted.qp_type = type;
    return ibv_create_qp(end.pd, &wanted) == nullptr;
  }
  static bool no_qp_ex(Endpoint& end, const std::function<void(ibv_qp_init_attr_ex&)>& change) {
    ibv_qp_init_attr_ex wanted{};
    wanted.send_cq = wanted.recv_cq = end.cq;
    wanted.cap = {1, 1, 1, 1, 0};
    wanted.qp_type = IBV_QPT_RC;
    wanted.comp_mask = IBV_QP_INIT_ATTR_PD;
    wanted.pd = end.pd;
    change(wanted);
    return ibv_create_qp_ex(end.context, &wanted) == nullptr;
  }
  static void expect_not_posted(Endpoint& end, ibv_wr_opcode opcode) {
    auto wr = end.request(opcode, 0, 8);
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_send(end.qp, &wr, &bad), EINVAL);
    EXPECT_EQ(bad, &wr);
  }
};

TEST_F(Unsupported, EachSaysSo) {
  const Call calls[] = {
      {"driver's own", [](Endpoint& end) { return no_qp(end, IBV_QPT_DRIVER); }},
      {"indirection table of connections",
       [](Endpoint& end) {
         return no_qp_ex(end, [](auto& wanted) { wanted.comp_mask |= IBV_QP_INIT_ATTR_IND_TABLE; });
       }},
      {"RX hash of connections",
       [](Endpoint& end) { return no_qp_ex(end, [](auto& wanted) { wanted.comp_mask |= IBV_QP_INIT_ATTR_RX_HASH; }); }},
      {"TSO of connections",
       [](Endpoint& end) {
         return no_qp_ex(end, [](auto& wanted) { wanted.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER; });
       }},
      {"dma-buf", [](Endpoint& end) { return ibv_reg_dmabuf_mr(end.pd, 0, 64, 0, -1, 0) == nullptr; }},
      {"rate limit of a connection",
       [](Endpoint& end) {
         ibv_qp_rate_limit_attr wanted{};
         return ibv_modify_qp_rate_limit(end.qp, &wanted) == EOPNOTSUPP;
       }},
      {"ECE, set",
       [](Endpoint& end) {
         ibv_ece ece{};
         return ibv_set_ece(end.qp, &ece) == EOPNOTSUPP;
       }},
      {"ECE, asked",
       [](Endpoint& end) {
         ibv_ece ece{};
         return ibv_query_ece(end.qp, &ece) == EOPNOTSUPP;
       }},
  };
  run_alone([&](Endpoint& end) {
    for (const auto& call : calls) {
      SCOPED_TRACE(call.name);
      errno = 0;
      EXPECT_TRUE(call.refused(end));
      EXPECT_EQ(errno, EOPNOTSUPP);
    }
  });
}

// ibv_post_send() also refuses operations that exist and that the device lacks.
TEST_F(Unsupported, OperationsOfOtherDevices) {
  run_alone([](Endpoint& end) {
    end.connect(end.address());
    expect_not_posted(end, IBV_WR_DRIVER1);
  });
}

class WithoutAtomicWrites : public Unsupported {
 protected:
  WithoutAtomicWrites() : Unsupported({"nic.capabilities.atomic_write=false"}) {}
};

TEST_F(WithoutAtomicWrites, NoneIsPosted) {
  run_alone([](Endpoint& end) {
    end.connect(end.address());
    expect_not_posted(end, IBV_WR_ATOMIC_WRITE);
  });
}

class WithRcAlone : public Unsupported {
 protected:
  WithRcAlone() : Unsupported({"nic.capabilities.uc=false", "nic.capabilities.ud=false"}) {}
};

TEST_F(WithRcAlone, OtherTransportsSaySo) {
  run_alone([](Endpoint& end) {
    for (const auto type : {IBV_QPT_UC, IBV_QPT_UD}) {
      errno = 0;
      EXPECT_TRUE(no_qp(end, type));
      EXPECT_EQ(errno, EOPNOTSUPP);
    }
  });
}

class WithoutRawPackets : public Unsupported {
 protected:
  WithoutRawPackets() : Unsupported({"nic.capabilities.raw=false"}) {}
};

TEST_F(WithoutRawPackets, NothingOfThem) {
  const Call calls[] = {
      {"queue pair", [](Endpoint& end) { return no_qp(end, IBV_QPT_RAW_PACKET); }},
      {"work queue",
       [](Endpoint& end) {
         ibv_wq_init_attr wanted{};
         wanted.wq_type = IBV_WQT_RQ;
         return ibv_create_wq(end.context, &wanted) == nullptr;
       }},
      {"table of work queues",
       [](Endpoint& end) {
         ibv_rwq_ind_table_init_attr wanted{};
         return ibv_create_rwq_ind_table(end.context, &wanted) == nullptr;
       }},
      {"flow",
       [](Endpoint& end) {
         ibv_flow_attr wanted{};
         return ibv_create_flow(end.qp, &wanted) == nullptr;
       }},
      {"counters",
       [](Endpoint& end) {
         ibv_counters_init_attr wanted{};
         return ibv_create_counters(end.context, &wanted) == nullptr;
       }},
      {"VLAN tags of completions",
       [](Endpoint& end) {
         ibv_cq_init_attr_ex wanted{};
         wanted.cqe = 1;
         wanted.wc_flags = IBV_WC_EX_WITH_CVLAN;
         return ibv_create_cq_ex(end.context, &wanted) == nullptr;
       }},
      {"VLAN stripping",
       [](Endpoint& end) {
         return no_qp_ex(end, [](auto& wanted) {
           wanted.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
           wanted.create_flags = IBV_QP_CREATE_CVLAN_STRIPPING;
         });
       }},
  };
  run_alone([&](Endpoint& end) {
    for (const auto& call : calls) {
      SCOPED_TRACE(call.name);
      errno = 0;
      EXPECT_TRUE(call.refused(end));
      EXPECT_EQ(errno, EOPNOTSUPP);
    }
  });
}

TEST_F(WithoutRawPackets, NoSegmentation) {
  run_alone([](Endpoint& end) {
    end.connect(end.address());
    expect_not_posted(end, IBV_WR_TSO);
  });
}

class WithoutMulticast : public Unsupported {
 protected:
  WithoutMulticast() : Unsupported({"nic.capabilities.max_multicast_groups=0"}) {}
};

TEST_F(WithoutMulticast, NoGroup) {
  run_alone([](Endpoint& end) {
    ibv_gid group{};
    group.raw[0] = 0xff;
    EXPECT_EQ(ibv_attach_mcast(end.qp, &group, 0), EOPNOTSUPP);
    EXPECT_EQ(ibv_detach_mcast(end.qp, &group, 0), EOPNOTSUPP);
    ibv_device_attr device;
    ASSERT_EQ(ibv_query_device(end.context, &device), 0);
    EXPECT_EQ(device.max_mcast_grp, 0);
  });
}

class WithoutInvalidate : public Unsupported {
 protected:
  WithoutInvalidate() : Unsupported({"nic.capabilities.invalidate=false"}) {}
};

TEST_F(WithoutInvalidate, NoQueuePairForIt) {
  run_alone([](Endpoint& end) {
    for (const auto operation : {IBV_QP_EX_WITH_SEND_WITH_INV, IBV_QP_EX_WITH_LOCAL_INV}) {
      errno = 0;
      EXPECT_TRUE(no_qp_ex(end, [&](auto& wanted) {
        wanted.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        wanted.send_ops_flags = IBV_QP_EX_WITH_SEND | operation;
      }));
      EXPECT_EQ(errno, EOPNOTSUPP);
    }
  });
}

TEST_F(WithoutInvalidate, NoneIsPosted) {
  run_alone([](Endpoint& end) {
    end.connect(end.address());
    for (const auto opcode : {IBV_WR_SEND_WITH_INV, IBV_WR_LOCAL_INV}) {
      auto wr = end.request(opcode, 0, 8);
      ibv_send_wr* bad = nullptr;
      EXPECT_EQ(ibv_post_send(end.qp, &wr, &bad), EINVAL) << opcode;
      EXPECT_EQ(bad, &wr);
    }
  });
}

TEST_F(WithoutInvalidate, NoneIsBuilt) {
  run_alone([](Endpoint& end) {
    ibv_qp_init_attr_ex wanted{};
    wanted.send_cq = wanted.recv_cq = end.cq;
    wanted.cap = {4, 4, 1, 1, 0};
    wanted.qp_type = IBV_QPT_RC;
    wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    wanted.pd = end.pd;
    wanted.send_ops_flags = IBV_QP_EX_WITH_SEND;
    ASSERT_EQ(ibv_destroy_qp(end.qp), 0);
    end.qp = ibv_create_qp_ex(end.context, &wanted);
    ASSERT_NE(end.qp, nullptr);
    end.connect(end.address());
    ibv_qp_ex* qp = ibv_qp_to_qp_ex(end.qp);
    using Build = void (*)(ibv_qp_ex*);
    for (const Build build : {Build{[](ibv_qp_ex* at) { ibv_wr_send_inv(at, 1); }},
                              Build{[](ibv_qp_ex* at) { ibv_wr_local_inv(at, 1); }}}) {
      ibv_wr_start(qp);
      build(qp);
      EXPECT_EQ(ibv_wr_complete(qp), EOPNOTSUPP);
    }
  });
}

}  // namespace
}  // namespace rnicsim::testing
