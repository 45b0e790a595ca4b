// SPDX-License-Identifier: Apache-2.0
// Multicast: receivers of datagrams to a group, and refusals of the verbs.
#include <algorithm>
#include <cstring>

#include "model/nic/personality/commands.h"
#include "sim/config/config.h"
#include "sim/system.h"
#include "tests/verbs/rc_pair.h"

namespace rnicsim::testing::multicast_test {
namespace {

constexpr std::uint32_t kQkey = 0x1ee7;
constexpr std::uint32_t kGrh = 40;
constexpr std::uint32_t kMulticastQpn = 0xffffff;

ibv_gid ipv4_group(std::uint8_t last) {
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xff;
  gid.raw[12] = 239, gid.raw[13] = 1, gid.raw[14] = 2, gid.raw[15] = last;
  return gid;
}

ibv_gid ipv6_group(std::uint8_t last) {
  ibv_gid gid{};
  gid.raw[0] = 0xff, gid.raw[1] = 0x0e, gid.raw[15] = last;
  return gid;
}

// A UD QP in RTS, with an endpoint's PD and memory, and its own CQ.
class Datagrams {
 public:
  Datagrams(Endpoint& end, std::uint32_t offset, std::uint32_t qkey = kQkey, std::uint32_t create_flags = 0)
      : end_(end), offset_(offset) {
    cq = ibv_create_cq(end.context, 64, nullptr, nullptr, 0);
    ibv_qp_init_attr_ex wanted{};
    wanted.send_cq = wanted.recv_cq = cq;
    wanted.cap = {16, 16, 2, 2, 0};
    wanted.qp_type = IBV_QPT_UD;
    wanted.sq_sig_all = 1;
    wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
    wanted.pd = end.pd;
    wanted.create_flags = create_flags;
    qp = ibv_create_qp_ex(end.context, &wanted);
    if (qp != nullptr) to_rts(qkey);
  }
  ~Datagrams() {
    for (const auto& group : groups_) EXPECT_EQ(ibv_detach_mcast(qp, &group, 0), 0);
    if (qp != nullptr) {
      EXPECT_EQ(ibv_destroy_qp(qp), 0);
    }
    EXPECT_EQ(ibv_destroy_cq(cq), 0);
  }
  Datagrams(const Datagrams&) = delete;
  Datagrams& operator=(const Datagrams&) = delete;

  void join(const ibv_gid& group) {
    ASSERT_EQ(ibv_attach_mcast(qp, &group, 0), 0);
    groups_.push_back(group);
  }
  void leave(const ibv_gid& group) {
    ASSERT_EQ(ibv_detach_mcast(qp, &group, 0), 0);
    std::erase_if(groups_, [&](const ibv_gid& other) { return std::memcmp(&other, &group, sizeof group) == 0; });
  }
  void receive(std::uint64_t wr_id) {
    ibv_sge sge{reinterpret_cast<std::uint64_t>(end_.buffer.data()) + offset_, 1024 + kGrh, end_.mr->lkey};
    ibv_recv_wr wr{};
    wr.wr_id = wr_id;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_recv(qp, &wr, &bad), 0);
  }
  // Sends `bytes` of `value` to the group, and waits for the completion.
  void send(const ibv_gid& group, std::uint8_t value, std::uint32_t bytes = 100, std::uint32_t qkey = kQkey,
            std::uint8_t gid_index = 1) {
    const std::uint32_t from = offset_ + 2048;
    std::fill_n(end_.buffer.begin() + from, bytes, value);
    ibv_ah_attr path{};
    path.is_global = 1;
    path.port_num = 1;
    path.grh.dgid = group;
    path.grh.sgid_index = gid_index;
    path.grh.hop_limit = 1;
    ibv_ah* ah = ibv_create_ah(end_.pd, &path);
    ASSERT_NE(ah, nullptr);
    ibv_sge sge{reinterpret_cast<std::uint64_t>(end_.buffer.data()) + from, bytes, end_.mr->lkey};
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = kMulticastQpn;
    wr.wr.ud.remote_qkey = qkey;
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(qp, &wr, &bad), 0);
    ibv_wc wc{};
    while (ibv_poll_cq(cq, 1, &wc) == 0) {}
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    if (wc.opcode == IBV_WC_RECV) early_.push_back(wc);
    EXPECT_EQ(ibv_destroy_ah(ah), 0);
  }
  // The next receive completion's data.
  std::optional<std::uint8_t> received(std::uint32_t from_qpn, std::uint32_t bytes = 100) {
    const auto wc = next();
    if (!wc) return std::nullopt;
    EXPECT_EQ(wc->status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc->byte_len, bytes + kGrh);
    EXPECT_EQ(wc->src_qp, from_qpn);
    EXPECT_TRUE(wc->wc_flags & IBV_WC_GRH);
    return end_.buffer[offset_ + kGrh];
  }
  bool nothing() { return !next(); }

  ibv_cq* cq = nullptr;
  ibv_qp* qp = nullptr;

 private:
  // Late completions of sends are skipped.
  std::optional<ibv_wc> next() {
    if (!early_.empty()) {
      const auto wc = early_.front();
      early_.erase(early_.begin());
      return wc;
    }
    ibv_wc wc{};
    for (int look = 0; look < 100; ++look)
      if (ibv_poll_cq(cq, 1, &wc) == 1 && wc.opcode == IBV_WC_RECV) return wc;
    return std::nullopt;
  }
  void to_rts(std::uint32_t qkey) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = 1;
    attributes.qkey = qkey;
    EXPECT_EQ(ibv_modify_qp(qp, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), 0);
    attributes.qp_state = IBV_QPS_RTR;
    EXPECT_EQ(ibv_modify_qp(qp, &attributes, IBV_QP_STATE), 0);
    attributes.qp_state = IBV_QPS_RTS;
    EXPECT_EQ(ibv_modify_qp(qp, &attributes, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
  }

  Endpoint& end_;
  const std::uint32_t offset_;
  std::vector<ibv_gid> groups_;
  std::vector<ibv_wc> early_;
};

class Multicast : public RcPair {
 protected:
  explicit Multicast(const std::vector<std::string>& sets = {}) : RcPair(sets) {}
  void SetUp() override {
    const auto features = system().config().nic.capabilities.features();
    if (!features.ud || !features.multicast) GTEST_SKIP() << "nic.capabilities.max_multicast_groups";
  }

  void run_both(const Body& on_h0, const Body& on_h1) {
    const auto body = [&](std::size_t me, const Body& action) {
      Endpoint end;
      action(end);
      meet(me);
    };
    run([&] { body(0, on_h0); }, [&] { body(1, on_h1); });
  }
};

TEST_F(Multicast, EveryMemberOfBothHosts) {
  Exchange<std::uint32_t> sender;
  run_both(
      [&](Endpoint& end) {
        Datagrams own(end, 0);
        Datagrams other(end, 8192);
        for (auto* member : {&own, &other}) {
          member->join(ipv4_group(1));
          member->receive(1);
        }
        sender.swap(0, own.qp->qp_num);
        own.send(ipv4_group(1), 0x42);
        EXPECT_EQ(own.received(own.qp->qp_num), 0x42);  // the sender, too
        EXPECT_EQ(other.received(own.qp->qp_num), 0x42);
      },
      [&](Endpoint& end) {
        Datagrams first(end, 0);
        Datagrams second(end, 8192);
        Datagrams stranger(end, 16384);
        for (auto* one : {&first, &second, &stranger}) one->receive(1);
        first.join(ipv4_group(1));
        second.join(ipv4_group(1));
        stranger.join(ipv4_group(2));
        const auto from = sender.swap(1, 0);
        EXPECT_EQ(first.received(from), 0x42);
        EXPECT_EQ(second.received(from), 0x42);
        EXPECT_TRUE(stranger.nothing());
      });
  EXPECT_EQ(wire().size(), 1u);
}

TEST_F(Multicast, AttachedTwiceGetsOneCopy) {
  run_alone([](Endpoint& end) {
    Datagrams own(end, 0);
    const auto group = ipv6_group(7);
    own.join(group);
    EXPECT_EQ(ibv_attach_mcast(own.qp, &group, 0), 0);
    own.receive(1);
    own.receive(2);
    own.send(group, 0x17, 100, kQkey, 0);
    EXPECT_EQ(own.received(own.qp->qp_num), 0x17);
    EXPECT_TRUE(own.nothing());
    own.leave(group);
    EXPECT_EQ(ibv_detach_mcast(own.qp, &group, 0), EINVAL);
    own.send(group, 0x18, 100, kQkey, 0);
    EXPECT_TRUE(own.nothing());
  });
}

TEST_F(Multicast, BlockedOnesOwnDoNotComeBack) {
  Exchange<std::uint32_t> sender;
  run_both(
      [&](Endpoint& end) {
        Datagrams own(end, 0, kQkey, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB);
        Datagrams other(end, 8192);
        ASSERT_NE(own.qp, nullptr);
        for (auto* member : {&own, &other}) {
          member->join(ipv4_group(1));
          member->receive(1);
        }
        sender.swap(0, own.qp->qp_num);
        own.send(ipv4_group(1), 0x42);
        EXPECT_TRUE(own.nothing());
        EXPECT_TRUE(other.nothing());
        other.send(ipv4_group(1), 0x43);
        EXPECT_EQ(own.received(other.qp->qp_num), 0x43);
      },
      [&](Endpoint& end) {
        Datagrams far(end, 0);
        far.join(ipv4_group(1));
        far.receive(1);
        EXPECT_EQ(far.received(sender.swap(1, 0)), 0x42);
      });
}

// Each member checks the Q_Key and its receives independently.
TEST_F(Multicast, QkeyAndReceivesOfEach) {
  run_alone([](Endpoint& end) {
    Datagrams sender(end, 0);
    Datagrams right(end, 8192);
    Datagrams other_qkey(end, 16384, kQkey + 1);
    Datagrams without_receive(end, 24576);
    for (auto* member : {&other_qkey, &without_receive, &right}) member->join(ipv4_group(3));
    right.receive(1);
    other_qkey.receive(1);
    sender.send(ipv4_group(3), 0x33);
    EXPECT_EQ(right.received(sender.qp->qp_num), 0x33);
    EXPECT_TRUE(other_qkey.nothing());
    EXPECT_TRUE(without_receive.nothing());
  });
}

TEST_F(Multicast, OnlyDatagramsAndOnlyGroups) {
  run_alone([](Endpoint& end) {
    const auto group = ipv4_group(1);
    EXPECT_EQ(ibv_attach_mcast(end.qp, &group, 0), EINVAL);  // RC
    EXPECT_EQ(ibv_detach_mcast(end.qp, &group, 0), EINVAL);
    Datagrams own(end, 0);
    const auto host = end.address().gid;
    EXPECT_EQ(ibv_attach_mcast(own.qp, &host, 0), EINVAL);
    EXPECT_EQ(ibv_detach_mcast(own.qp, &group, 0), EINVAL);  // not attached
  });
}

TEST_F(Multicast, OnlyDatagramsMayBeBlocked) {
  run_alone([](Endpoint& end) {
    ibv_qp_init_attr_ex wanted{};
    wanted.send_cq = wanted.recv_cq = end.cq;
    wanted.cap = {1, 1, 1, 1, 0};
    wanted.qp_type = IBV_QPT_RC;
    wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
    wanted.pd = end.pd;
    wanted.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
    errno = 0;
    EXPECT_EQ(ibv_create_qp_ex(end.context, &wanted), nullptr);
    EXPECT_EQ(errno, EINVAL);
  });
}

TEST_F(Multicast, AMemberIsBusy) {
  run_alone([](Endpoint& end) {
    Datagrams own(end, 0);
    own.join(ipv4_group(1));
    own.join(ipv4_group(2));
    EXPECT_EQ(ibv_destroy_qp(own.qp), EBUSY);
    own.leave(ipv4_group(1));
    EXPECT_EQ(ibv_destroy_qp(own.qp), EBUSY);
    own.leave(ipv4_group(2));
  });
}

// QPs of a closed context belong to no group.
TEST_F(Multicast, LeftWithTheContext) {
  run_alone([](Endpoint& end) {
    ibv_context* context = ibv_open_device(end.context->device);
    ibv_pd* pd = ibv_alloc_pd(context);
    ibv_cq* cq = ibv_create_cq(context, 4, nullptr, nullptr, 0);
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = cq;
    wanted.cap = {1, 1, 1, 1, 0};
    wanted.qp_type = IBV_QPT_UD;
    ibv_qp* qp = ibv_create_qp(pd, &wanted);
    ASSERT_NE(qp, nullptr);
    const auto group = ipv4_group(1);
    ASSERT_EQ(ibv_attach_mcast(qp, &group, 0), 0);
    EXPECT_EQ(ibv_close_device(context), 0);
  });
}

class FewGroups : public Multicast {
 protected:
  FewGroups()
      : Multicast({"nic.capabilities.max_multicast_groups=2", "nic.capabilities.max_group_qps=1",
                   "nic.capabilities.max_attached_qps=2"}) {}
};

TEST_F(FewGroups, NoMoreThanTheDeviceSays) {
  run_alone([](Endpoint& end) {
    ibv_device_attr device;
    ASSERT_EQ(ibv_query_device(end.context, &device), 0);
    EXPECT_EQ(device.max_mcast_grp, 2);
    EXPECT_EQ(device.max_mcast_qp_attach, 1);
    EXPECT_EQ(device.max_total_mcast_qp_attach, 2);
    Datagrams first(end, 0);
    Datagrams second(end, 8192);
    first.join(ipv4_group(1));
    auto group = ipv4_group(1);
    EXPECT_EQ(ibv_attach_mcast(second.qp, &group, 0), ENOMEM);
    second.join(ipv4_group(2));
    group = ipv4_group(3);
    EXPECT_EQ(ibv_attach_mcast(second.qp, &group, 0), ENOMEM);
  });
}

}  // namespace
}  // namespace rnicsim::testing::multicast_test
