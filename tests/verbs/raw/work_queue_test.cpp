// SPDX-License-Identifier: Apache-2.0
// Work queues, and the distribution of frames by receive-side scaling.
#include <map>
#include <set>

#include "tests/verbs/raw/raw_packets.h"

namespace rnicsim::testing {
namespace {

class WorkQueues : public RawPackets {
 protected:
  using RawPackets::RawPackets;

  static ibv_wq* make(Endpoint& end, std::uint32_t max_wr = 32, std::uint32_t flags = 0) {
    ibv_wq_init_attr wanted{};
    wanted.wq_type = IBV_WQT_RQ;
    wanted.max_wr = max_wr;
    wanted.max_sge = 1;
    wanted.pd = end.pd;
    wanted.cq = end.cq;
    wanted.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
    wanted.create_flags = flags;
    ibv_wq* wq = ibv_create_wq(end.context, &wanted);
    EXPECT_NE(wq, nullptr) << errno;
    return wq;
  }
  static int move(ibv_wq* wq, ibv_wq_state state) {
    ibv_wq_attr to{};
    to.attr_mask = IBV_WQ_ATTR_STATE;
    to.wq_state = state;
    return ibv_modify_wq(wq, &to);
  }
  static int change(ibv_wq* wq, std::uint32_t flags, std::uint32_t mask) {
    ibv_wq_attr to{};
    to.attr_mask = IBV_WQ_ATTR_FLAGS;
    to.flags = flags;
    to.flags_mask = mask;
    return ibv_modify_wq(wq, &to);
  }
  static void receive(Endpoint& end, ibv_wq* wq, std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t id = first; id < first + count; ++id) {
      ibv_recv_wr wr;
      ibv_sge sge;
      post_frame_receive(end, wr, sge, id % 32 * 2048);
      wr.wr_id = id;
      ibv_recv_wr* bad = nullptr;
      ASSERT_EQ(ibv_post_wq_recv(wq, &wr, &bad), 0);
    }
  }
};

// An indirection table of all queues and its QP, which gets all frames to kFarMac.
class Scaling {
 public:
  Scaling(Endpoint& end, std::vector<ibv_wq*> queues, std::uint64_t fields) {
    ibv_rwq_ind_table_init_attr of_table{};
    while (std::size_t{1} << of_table.log_ind_tbl_size < queues.size()) ++of_table.log_ind_tbl_size;
    of_table.ind_tbl = queues.data();
    table = ibv_create_rwq_ind_table(end.context, &of_table);
    EXPECT_NE(table, nullptr) << errno;
    ibv_qp_init_attr_ex wanted{};
    wanted.qp_type = IBV_QPT_RAW_PACKET;
    wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
    wanted.pd = end.pd;
    wanted.rwq_ind_tbl = table;
    wanted.rx_hash_conf = {.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
                           .rx_hash_key_len = 40,
                           .rx_hash_key = kMicrosoftKey,
                           .rx_hash_fields_mask = fields};
    qp = ibv_create_qp_ex(end.context, &wanted);
    EXPECT_NE(qp, nullptr) << errno;
    FlowRuleBytes rule;
    flow = rule.to_mac(kFarMac).create(qp);
    EXPECT_NE(flow, nullptr) << errno;
  }
  ~Scaling() {
    EXPECT_EQ(ibv_destroy_qp(qp), EBUSY) << "the flow's";
    EXPECT_EQ(ibv_destroy_flow(flow), 0);
    EXPECT_EQ(ibv_destroy_rwq_ind_table(table), EBUSY) << "the QP's";
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
    EXPECT_EQ(ibv_destroy_rwq_ind_table(table), 0);
  }
  Scaling(const Scaling&) = delete;
  Scaling& operator=(const Scaling&) = delete;

  ibv_rwq_ind_table* table = nullptr;
  ibv_qp* qp = nullptr;
  ibv_flow* flow = nullptr;

 private:
  // Key of Microsoft's RSS verification suite.
  std::uint8_t kMicrosoftKey[40] = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
                                    0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
                                    0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};
};

constexpr std::uint64_t kAddresses = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4;
constexpr std::uint64_t kPorts = IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP;

TEST_F(WorkQueues, FramesAreSpreadByTheirPorts) {
  constexpr std::uint16_t kFlows = 16;
  std::vector<FrameBytes> frames;
  for (int round = 0; round < 2; ++round)
    for (std::uint16_t port = 0; port < kFlows; ++port) frames.push_back(udp_frame(std::uint16_t(5000 + port), 9));
  run_sending(frames, [&](Endpoint& end) {
    std::vector<ibv_wq*> queues;
    for (int i = 0; i < 4; ++i) {
      queues.push_back(make(end));
      ASSERT_EQ(move(queues.back(), IBV_WQS_RDY), 0);
      receive(end, queues.back(), 0, 32);
    }
    {
      const Scaling scaling(end, queues, kAddresses | kPorts);
      for (ibv_wq* wq : queues) EXPECT_EQ(ibv_destroy_wq(wq), EBUSY);
      meet(1);
      std::map<std::uint32_t, int> count;
      for (std::size_t i = 0; i < frames.size(); ++i) {
        const auto wc = completion_soon(end.cq, 1000);
        ASSERT_TRUE(wc) << i;
        EXPECT_EQ(wc->status, IBV_WC_SUCCESS);
        EXPECT_EQ(wc->byte_len, frames[i].size());
        ++count[wc->qp_num];
      }
      EXPECT_GT(count.size(), 1u);
      for (const auto& [number, frames_there] : count) {
        EXPECT_EQ(frames_there % 2, 0) << "both of a flow go the same way";
        EXPECT_TRUE(std::ranges::any_of(queues, [&](const ibv_wq* wq) { return wq->wq_num == number; }));
      }
    }
    for (ibv_wq* wq : queues) EXPECT_EQ(ibv_destroy_wq(wq), 0);
  });
}

TEST_F(WorkQueues, WithoutPortsAllAreOneFlow) {
  std::vector<FrameBytes> frames;
  for (std::uint16_t port = 0; port < 8; ++port) frames.push_back(udp_frame(std::uint16_t(5000 + port), 9));
  run_sending(frames, [&](Endpoint& end) {
    std::vector<ibv_wq*> queues;
    for (int i = 0; i < 4; ++i) {
      queues.push_back(make(end));
      ASSERT_EQ(move(queues.back(), IBV_WQS_RDY), 0);
      receive(end, queues.back(), 0, 32);
    }
    {
      const Scaling scaling(end, queues, kAddresses);
      meet(1);
      std::set<std::uint32_t> numbers;
      for (std::size_t i = 0; i < frames.size(); ++i) {
        const auto wc = completion_soon(end.cq, 1000);
        ASSERT_TRUE(wc) << i;
        numbers.insert(wc->qp_num);
      }
      EXPECT_EQ(numbers.size(), 1u);
    }
    for (ibv_wq* wq : queues) EXPECT_EQ(ibv_destroy_wq(wq), 0);
  });
}

TEST_F(WorkQueues, StripTagsAndScatterTheFcs) {
  const auto plain = ethernet_frame(200);
  const auto tagged = with_tag(plain, 0x6123);
  run_sending({tagged}, [&](Endpoint& end) {
    ibv_wq* wq = make(end, 4, IBV_WQ_FLAGS_CVLAN_STRIPPING | IBV_WQ_FLAGS_SCATTER_FCS);
    ASSERT_EQ(move(wq, IBV_WQS_RDY), 0);
    receive(end, wq, 0, 1);
    {
      const Scaling scaling(end, {wq}, kAddresses);
      meet(1);
      const auto wc = completion_soon(end.cq, 1000);
      ASSERT_TRUE(wc);
      EXPECT_EQ(FrameBytes(end.buffer.begin(), end.buffer.begin() + wc->byte_len), with_fcs(plain, tagged));
    }
    EXPECT_EQ(ibv_destroy_wq(wq), 0);
  });
}

// In the state RDY, and before.
TEST_F(WorkQueues, TheStrippingOfTagsMayChange) {
  constexpr std::uint32_t kStrips = IBV_WQ_FLAGS_CVLAN_STRIPPING;
  const auto tagged = with_tag(ethernet_frame(200), 0x6123);
  run_both(
      [&](Endpoint& end) {
        RawQueue own(end, 0);
        for (int i = 0; i < 3; ++i) {
          meet(0);
          own.send(tagged);
        }
      },
      [&](Endpoint& end) {
        ibv_wq* wq = make(end, 4);
        ASSERT_EQ(change(wq, kStrips, kStrips), 0);
        ASSERT_EQ(move(wq, IBV_WQS_RDY), 0);
        receive(end, wq, 0, 3);
        {
          const Scaling scaling(end, {wq}, kAddresses);
          for (const std::size_t bytes : {200, 204, 200}) {
            meet(1);
            const auto wc = completion_soon(end.cq, 1000);
            ASSERT_TRUE(wc);
            EXPECT_EQ(wc->byte_len, bytes);
            ASSERT_EQ(change(wq, bytes == 204 ? kStrips : 0, kStrips), 0);
          }
        }
        EXPECT_EQ(change(wq, kStrips, 0), EINVAL) << "a flag that is not to change";
        EXPECT_EQ(change(wq, IBV_WQ_FLAGS_SCATTER_FCS, IBV_WQ_FLAGS_SCATTER_FCS), EOPNOTSUPP);
        EXPECT_EQ(change(wq, 1u << 20, 1u << 20), EINVAL);
        EXPECT_EQ(ibv_destroy_wq(wq), 0);
      });
}

TEST_F(WorkQueues, InErrorReceivesAreFlushed) {
  run_alone([](Endpoint& end) {
    ibv_wq* wq = make(end, 4);
    ibv_recv_wr wr{};
    ibv_recv_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_wq_recv(wq, &wr, &bad), EINVAL) << "in RESET";
    ASSERT_EQ(move(wq, IBV_WQS_RDY), 0);
    receive(end, wq, 0, 2);
    ASSERT_EQ(move(wq, IBV_WQS_ERR), 0);
    receive(end, wq, 2, 1);
    expect_completions(end.cq, IBV_WC_WR_FLUSH_ERR, 0, 3);
    EXPECT_EQ(move(wq, IBV_WQS_RDY), EINVAL);
    ASSERT_EQ(move(wq, IBV_WQS_RESET), 0);
    ASSERT_EQ(move(wq, IBV_WQS_RDY), 0);
    receive(end, wq, 0, 4);
    ASSERT_EQ(move(wq, IBV_WQS_RESET), 0);
    EXPECT_FALSE(completion_soon(end.cq)) << "RESET discards them";
    EXPECT_EQ(ibv_destroy_wq(wq), 0);
  });
}

TEST_F(WorkQueues, KeepWhatTheyStandOn) {
  run_alone([](Endpoint& end) {
    ibv_pd* pd = ibv_alloc_pd(end.context);
    std::swap(end.pd, pd);
    ibv_wq* wq = make(end);
    std::swap(end.pd, pd);
    EXPECT_EQ(ibv_dealloc_pd(pd), EBUSY);
    EXPECT_EQ(ibv_destroy_wq(wq), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
  });
}

ibv_rwq_ind_table* make_table(ibv_context* context, std::uint32_t log_size, std::vector<ibv_wq*> queues) {
  ibv_rwq_ind_table_init_attr wanted{};
  wanted.log_ind_tbl_size = log_size;
  wanted.ind_tbl = queues.data();
  errno = 0;
  return ibv_create_rwq_ind_table(context, &wanted);
}

// A size that is no power of two cannot be expressed.
TEST_F(WorkQueues, TablesAreAsLargeAsTheDeviceSays) {
  run_alone([](Endpoint& end) {
    ibv_device_attr_ex device;
    ASSERT_EQ(ibv_query_device_ex(end.context, nullptr, &device), 0);
    const std::uint32_t most = device.rss_caps.max_rwq_indirection_table_size;
    ASSERT_EQ(most, 512u);
    ibv_wq* wq = make(end);
    const std::vector<ibv_wq*> queues(2 * most, wq);
    for (std::uint32_t log_size = 0; log_size < 9; ++log_size) {
      ibv_rwq_ind_table* table = make_table(end.context, log_size, queues);
      ASSERT_NE(table, nullptr) << log_size;
      EXPECT_EQ(ibv_destroy_rwq_ind_table(table), 0);
    }
    { const Scaling scaling(end, std::vector<ibv_wq*>(most, wq), kAddresses); }
    for (const std::uint32_t log_size : {10u, 31u, 32u, 63u, 64u, ~0u}) {
      EXPECT_EQ(make_table(end.context, log_size, queues), nullptr) << log_size;
      EXPECT_EQ(errno, EINVAL);
    }
    EXPECT_EQ(ibv_destroy_wq(wq), 0);
  });
}

TEST_F(WorkQueues, TablesAskForNoState) {
  run_alone([](Endpoint& end) {
    std::vector<ibv_wq*> queues;
    for (const auto state : {IBV_WQS_RESET, IBV_WQS_RDY, IBV_WQS_ERR, IBV_WQS_RESET}) {
      queues.push_back(make(end, 4));
      if (state != IBV_WQS_RESET) {
        ASSERT_EQ(move(queues.back(), state), 0);
      }
    }
    {
      const Scaling scaling(end, queues, kAddresses);
      for (const auto state : {IBV_WQS_ERR, IBV_WQS_RESET, IBV_WQS_RDY})
        for (ibv_wq* wq : queues) EXPECT_EQ(move(wq, state), 0);
      ibv_wq_attr wrong{};
      wrong.attr_mask = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE;
      wrong.wq_state = IBV_WQS_ERR;
      wrong.curr_wq_state = IBV_WQS_RESET;
      EXPECT_EQ(ibv_modify_wq(queues[0], &wrong), EINVAL);
      EXPECT_EQ(queues[0]->state, IBV_WQS_RDY);
      for (ibv_wq* wq : queues) EXPECT_EQ(ibv_destroy_wq(wq), EBUSY);
      ibv_qp_rate_limit_attr rate{};
      EXPECT_EQ(ibv_modify_qp_rate_limit(scaling.qp, &rate), EINVAL) << "it sends nothing";
    }
    for (ibv_wq* wq : queues) EXPECT_EQ(ibv_destroy_wq(wq), 0);
  });
}

TEST_F(WorkQueues, NoneIsAnothersContexts) {
  run_alone([](Endpoint& end) {
    Endpoint other;
    ibv_wq* own = make(end);
    ibv_wq* strange = make(other);
    for (const auto& queues : {std::vector{own, strange}, std::vector{strange, own}}) {
      EXPECT_EQ(make_table(end.context, 1, queues), nullptr);
      EXPECT_EQ(errno, EINVAL);
    }
    const auto handle = std::exchange(own->handle, strange->handle);
    EXPECT_EQ(make_table(end.context, 0, {own}), nullptr) << "by its handle";
    EXPECT_EQ(errno, ENOENT);
    own->handle = handle;
    EXPECT_EQ(ibv_destroy_wq(strange), 0);
    EXPECT_EQ(ibv_destroy_wq(own), 0);
  });
}

class FewTables : public WorkQueues {
 protected:
  FewTables() : WorkQueues({"nic.capabilities.max_rss=2"}) {}
};

TEST_F(FewTables, NoMoreThanTheDeviceSays) {
  run_alone([](Endpoint& end) {
    ibv_device_attr_ex device;
    ASSERT_EQ(ibv_query_device_ex(end.context, nullptr, &device), 0);
    ASSERT_EQ(device.rss_caps.max_rwq_indirection_tables, 2u);
    ibv_wq* wq = make(end);
    ibv_rwq_ind_table* tables[] = {make_table(end.context, 0, {wq}), make_table(end.context, 0, {wq})};
    EXPECT_EQ(make_table(end.context, 0, {wq}), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    for (ibv_rwq_ind_table* table : tables) EXPECT_EQ(ibv_destroy_rwq_ind_table(table), 0);
    std::uint8_t key[40] = {};
    ibv_qp_init_attr_ex wanted{};
    wanted.qp_type = IBV_QPT_RAW_PACKET;
    wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
    wanted.pd = end.pd;
    wanted.rwq_ind_tbl = make_table(end.context, 0, {wq});
    wanted.rx_hash_conf = {IBV_RX_HASH_FUNC_TOEPLITZ, sizeof key, key, kAddresses};
    ibv_qp* qps[] = {ibv_create_qp_ex(end.context, &wanted), ibv_create_qp_ex(end.context, &wanted)};
    errno = 0;
    EXPECT_EQ(ibv_create_qp_ex(end.context, &wanted), nullptr) << "each is one of the device's";
    EXPECT_EQ(errno, ENOMEM);
    for (ibv_qp* qp : qps) EXPECT_EQ(ibv_destroy_qp(qp), 0);
    EXPECT_EQ(ibv_destroy_rwq_ind_table(wanted.rwq_ind_tbl), 0);
    EXPECT_EQ(ibv_destroy_wq(wq), 0);
  });
}

// A program that leaves flows, tables and queues behind.
TEST_F(WorkQueues, LeftWithTheContext) {
  run_alone([](Endpoint& end) {
    ibv_context* context = ibv_open_device(end.context->device);
    ibv_wq_init_attr wanted{};
    wanted.wq_type = IBV_WQT_RQ;
    wanted.max_wr = wanted.max_sge = 1;
    wanted.pd = ibv_alloc_pd(context);
    wanted.cq = ibv_create_cq(context, 4, nullptr, nullptr, 0);
    ibv_wq* wq = ibv_create_wq(context, &wanted);
    ASSERT_NE(wq, nullptr);
    ibv_rwq_ind_table_init_attr of_table{};
    of_table.ind_tbl = &wq;
    std::uint8_t key[40] = {};
    ibv_qp_init_attr_ex of_qp{};
    of_qp.qp_type = IBV_QPT_RAW_PACKET;
    of_qp.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
    of_qp.pd = wanted.pd;
    of_qp.rwq_ind_tbl = ibv_create_rwq_ind_table(context, &of_table);
    of_qp.rx_hash_conf = {IBV_RX_HASH_FUNC_TOEPLITZ, 40, key, kAddresses};
    ibv_qp* qp = ibv_create_qp_ex(context, &of_qp);
    ASSERT_NE(qp, nullptr);
    FlowRuleBytes rule;
    ASSERT_NE(rule.to_mac(kFarMac).create(qp), nullptr);
    EXPECT_EQ(ibv_close_device(context), 0);
  });
}

}  // namespace
}  // namespace rnicsim::testing
