// SPDX-License-Identifier: Apache-2.0
// libibverbs.so.1 as a program uses it, with a port whose device does the least.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <time.h>

#include <vector>

#include "tests/unit/verbs/fake_port.h"

namespace rnicsim {
namespace {

FakePort* current_port = nullptr;

class VerbsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    current_port = &port_;
    ibv_device** list = ibv_get_device_list(nullptr);
    ASSERT_NE(list[0], nullptr);
    context_ = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    ASSERT_NE(context_, nullptr);
    pd_ = ibv_alloc_pd(context_);
    channel_ = ibv_create_comp_channel(context_);
    cq_ = ibv_create_cq(context_, 64, this, channel_, 0);
    ASSERT_NE(cq_, nullptr);
  }
  void TearDown() override {
    EXPECT_EQ(ibv_destroy_cq(cq_), 0);
    EXPECT_EQ(ibv_destroy_comp_channel(channel_), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd_), 0);
    EXPECT_EQ(ibv_close_device(context_), 0);
    EXPECT_EQ(port_.allocations, 0);
  }

  ibv_qp_init_attr attributes(std::uint32_t send = 4, std::uint32_t receive = 4) const {
    return {.send_cq = cq_,
            .recv_cq = cq_,
            .cap = {.max_send_wr = send, .max_recv_wr = receive, .max_send_sge = 1, .max_recv_sge = 1},
            .qp_type = IBV_QPT_RC};
  }
  ibv_qp* make_qp() {
    ibv_qp_init_attr init = attributes();
    ibv_qp* qp = ibv_create_qp(pd_, &init);
    capabilities_ = init.cap;
    return qp;
  }
  static void move(ibv_qp* qp, ibv_qp_state state) {
    ibv_qp_attr to{};
    to.qp_state = state;
    ASSERT_EQ(ibv_modify_qp(qp, &to, IBV_QP_STATE), 0);
    ASSERT_EQ(qp->state, state);
  }

  FakePort port_;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_qp_cap capabilities_{};
};

TEST_F(VerbsTest, DeviceAndPortAreHonest) {
  ibv_device_attr device;
  ASSERT_EQ(ibv_query_device(context_, &device), 0);
  EXPECT_STREQ(device.fw_ver, "1.2.3");
  EXPECT_EQ(device.max_qp_wr, 4096 / 10);  // blocks of the longest WQE: a datagram of 512 inline bytes
  EXPECT_EQ(device.max_srq, 0);
  ibv_port_attr port;
  ASSERT_EQ(ibv_query_port(context_, 1, &port), 0);
  EXPECT_EQ(port.link_layer, IBV_LINK_LAYER_ETHERNET);
  EXPECT_EQ(ibv_query_port(context_, 2, &port), EINVAL);
}

TEST_F(VerbsTest, GidTableFollowsTheConventions) {
  ibv_gid gid;
  EXPECT_EQ(ibv_query_gid(context_, 1, 1, &gid), 0);
  EXPECT_EQ(gid.raw[0], 0xfe);
  EXPECT_EQ(ibv_query_gid(context_, 1, 2, &gid), 0);
  EXPECT_EQ(gid.raw[0], 0);
  EXPECT_EQ(ibv_query_gid(context_, 1, 4, &gid), -1);
  ibv_gid_entry entries[8];
  EXPECT_EQ(ibv_query_gid_ex(context_, 1, 2, entries, 0), ENODATA);
  EXPECT_EQ(ibv_query_gid_ex(context_, 1, 9, entries, 0), EINVAL);
  EXPECT_EQ(ibv_query_gid_table(context_, entries, 8, 0), 2);
  EXPECT_EQ(ibv_query_gid_table(context_, entries, 2, 0), 2);
  EXPECT_EQ(ibv_query_gid_table(context_, entries, 1, 0), -EINVAL);
  EXPECT_EQ(ibv_query_gid_table(context_, entries, 0, 0), -EINVAL);
  EXPECT_EQ(entries[1].gid_type, std::uint32_t(IBV_GID_TYPE_ROCE_V2));
}

TEST_F(VerbsTest, KeysChangeAndAccessIsChecked) {
  char buffer[64];
  ibv_mr* first = ibv_reg_mr(pd_, buffer, sizeof buffer, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(first, nullptr);
  const std::uint32_t stale = first->lkey;
  EXPECT_EQ(stale >> 8, 7u);
  EXPECT_EQ(port_.regions.back().key, stale & 0xff);
  EXPECT_EQ(ibv_dereg_mr(first), 0);
  EXPECT_EQ(port_.pins, 0);
  ibv_mr* second = ibv_reg_mr(pd_, buffer, sizeof buffer, 0);
  EXPECT_NE(second->lkey, stale);
  second->handle ^= 0x40;
  EXPECT_EQ(ibv_dereg_mr(second), ENOENT);
  second->handle ^= 0x40;
  EXPECT_EQ(ibv_dereg_mr(second), 0);
  EXPECT_EQ(ibv_reg_mr(pd_, buffer, 1, IBV_ACCESS_REMOTE_WRITE), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_reg_mr(pd_, buffer, 1, IBV_ACCESS_ON_DEMAND), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST_F(VerbsTest, PostsByStateAndExactlyToTheCap) {
  ibv_qp* qp = make_qp();
  ibv_send_wr send{.opcode = IBV_WR_SEND};
  ibv_send_wr* bad = nullptr;
  ibv_recv_wr receive{};
  ibv_recv_wr* bad_receive = nullptr;
  EXPECT_EQ(ibv_post_send(qp, &send, &bad), EINVAL);
  EXPECT_EQ(ibv_post_recv(qp, &receive, &bad_receive), EINVAL);
  move(qp, IBV_QPS_INIT);
  EXPECT_EQ(ibv_post_send(qp, &send, &bad), EINVAL);
  receive.next = &receive;  // ends when the queue is full
  EXPECT_EQ(ibv_post_recv(qp, &receive, &bad_receive), ENOMEM);
  EXPECT_EQ(bad_receive, &receive);
  move(qp, IBV_QPS_RTR);
  move(qp, IBV_QPS_RTS);
  port_.executes = false;
  for (std::uint32_t i = 0; i < capabilities_.max_send_wr; ++i) ASSERT_EQ(ibv_post_send(qp, &send, &bad), 0);
  EXPECT_EQ(ibv_post_send(qp, &send, &bad), ENOMEM);
  EXPECT_EQ(bad, &send);
  move(qp, IBV_QPS_RESET);
  move(qp, IBV_QPS_RTS);
  send.num_sge = 17;
  EXPECT_EQ(ibv_post_send(qp, &send, &bad), EINVAL);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(VerbsTest, CompletesManyLapsAndCharges) {
  ibv_qp* qp = make_qp();
  move(qp, IBV_QPS_RTS);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    ibv_recv_wr receive{.wr_id = 10'000 + i};
    ibv_recv_wr* bad_receive = nullptr;
    ibv_send_wr send{.wr_id = i, .opcode = IBV_WR_SEND_WITH_IMM, .send_flags = IBV_SEND_SIGNALED};
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_recv(qp, &receive, &bad_receive), 0);
    ASSERT_EQ(ibv_post_send(qp, &send, &bad), 0);
    ibv_wc completions[4];
    ASSERT_EQ(ibv_poll_cq(cq_, 4, completions), 2);
    EXPECT_EQ(completions[0].wr_id, 10'000 + i);
    EXPECT_EQ(completions[0].opcode, IBV_WC_RECV);
    EXPECT_EQ(completions[0].wc_flags, unsigned(IBV_WC_WITH_IMM));
    EXPECT_EQ(completions[0].byte_len, 8u);
    EXPECT_EQ(completions[1].wr_id, i);
    EXPECT_EQ(completions[1].opcode, IBV_WC_SEND);
  }
  EXPECT_EQ(port_.waits, 0);
  ibv_wc none;
  EXPECT_EQ(ibv_poll_cq(cq_, 1, &none), 0);
  EXPECT_EQ(port_.waits, 1);
  const auto charged = [&](abi::CpuCost cost) { return port_.charged[std::size_t(cost)]; };
  EXPECT_EQ(charged(abi::CpuCost::post_wqe), 1000u);
  EXPECT_EQ(charged(abi::CpuCost::ring_doorbell), 1000u);
  EXPECT_EQ(charged(abi::CpuCost::doorbell_lock), 0u);
  EXPECT_EQ(charged(abi::CpuCost::mmio_write), 1000u);
  EXPECT_EQ(charged(abi::CpuCost::poll_cqe), 2000u);
  EXPECT_EQ(charged(abi::CpuCost::poll_cq), 1001u);
  EXPECT_EQ(ibv_destroy_cq(cq_), EBUSY);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(VerbsTest, DestroyedQpTakesItsCompletionsAlong) {
  ibv_qp* first = make_qp();
  ibv_qp* second = make_qp();
  move(first, IBV_QPS_RTS);
  move(second, IBV_QPS_RTS);
  ibv_send_wr send{.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(first, &send, &bad), 0);
  send.wr_id = 2;
  ASSERT_EQ(ibv_post_send(second, &send, &bad), 0);
  EXPECT_EQ(ibv_destroy_qp(first), 0);
  ibv_wc completions[2];
  ASSERT_EQ(ibv_poll_cq(cq_, 2, completions), 1);
  EXPECT_EQ(completions[0].wr_id, 2u);
  EXPECT_EQ(ibv_destroy_qp(second), 0);
}

TEST_F(VerbsTest, CompletionEventsNeedArmingAndAcknowledging) {
  ibv_qp* qp = make_qp();
  move(qp, IBV_QPS_RTS);
  ASSERT_EQ(::fcntl(channel_->fd, F_SETFL, O_NONBLOCK), 0);
  ibv_cq* cq = nullptr;
  void* cq_context = nullptr;
  ibv_send_wr send{.opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED};
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(qp, &send, &bad), 0);
  EXPECT_EQ(ibv_get_cq_event(channel_, &cq, &cq_context), -1);
  EXPECT_EQ(errno, EAGAIN);
  ASSERT_EQ(ibv_req_notify_cq(cq_, 0), 0);
  ASSERT_EQ(ibv_post_send(qp, &send, &bad), 0);
  ASSERT_EQ(ibv_get_cq_event(channel_, &cq, &cq_context), 0);
  EXPECT_EQ(cq, cq_);
  EXPECT_EQ(cq_context, this);
  ibv_ack_cq_events(cq, 1);
  EXPECT_EQ(ibv_destroy_comp_channel(channel_), EBUSY);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(VerbsTest, AsynchronousEventsNameTheObject) {
  ibv_qp* qp = make_qp();
  port_.raise(abi::EventType::qp_access_error, 0xdead);  // belongs to another context
  port_.raise(abi::EventType::qp_access_error, qp->qp_num);
  ibv_async_event event;
  ASSERT_EQ(ibv_get_async_event(context_, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
  EXPECT_EQ(event.element.qp, qp);
  ibv_ack_async_event(&event);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(VerbsTest, ErrorCompletionsFreeWhatCameBefore) {
  ibv_qp* qp = make_qp();
  move(qp, IBV_QPS_RTS);
  port_.executes = false;
  for (std::uint64_t i = 0; i < 3; ++i) {
    ibv_send_wr send{.wr_id = i, .opcode = IBV_WR_RDMA_WRITE};
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(qp, &send, &bad), 0);
  }
  port_.complete(qp->qp_num, abi::CqeOpcode::requester_error, 2, abi::CqeSyndrome::remote_access_error);
  ibv_wc completion;
  ASSERT_EQ(ibv_poll_cq(cq_, 1, &completion), 1);
  EXPECT_EQ(completion.wr_id, 2u);
  EXPECT_EQ(completion.status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(VerbsTest, WorkRequestApiIsAllOrNothing) {
  ibv_qp_init_attr_ex init{.send_cq = cq_,
                           .recv_cq = cq_,
                           .cap = {.max_send_wr = 4, .max_send_sge = 1, .max_inline_data = 64},
                           .qp_type = IBV_QPT_RC,
                           .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                           .pd = pd_,
                           .send_ops_flags = IBV_QP_EX_WITH_TSO};
  EXPECT_EQ(ibv_create_qp_ex(context_, &init), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  init.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
  ibv_qp* qp = ibv_create_qp_ex(context_, &init);
  ASSERT_NE(qp, nullptr);
  move(qp, IBV_QPS_RTS);
  ibv_qp_ex* extended = ibv_qp_to_qp_ex(qp);
  char data[1024] = {};
  const auto write = [&](std::size_t bytes) {
    extended->wr_id = 5;
    extended->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write(extended, 1, 2);
    ibv_wr_set_inline_data(extended, data, bytes);
  };
  ibv_wc completions[4];
  ibv_wr_start(extended);
  write(8);
  write(sizeof data);
  EXPECT_EQ(ibv_wr_complete(extended), EINVAL);
  EXPECT_EQ(ibv_poll_cq(cq_, 4, completions), 0);
  ibv_wr_start(extended);
  write(8);
  write(64);
  EXPECT_EQ(ibv_wr_complete(extended), 0);
  EXPECT_EQ(ibv_poll_cq(cq_, 4, completions), 2);
  EXPECT_EQ(completions[1].wr_id, 5u);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(VerbsTest, ExtendedCqPollsAndReads) {
  ibv_cq_init_attr_ex init{.cqe = 8, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_QP_NUM};
  ibv_cq_ex* cq = ibv_create_cq_ex(context_, &init);
  ASSERT_NE(cq, nullptr);
  ibv_qp_init_attr qp_init = attributes();
  qp_init.send_cq = qp_init.recv_cq = ibv_cq_ex_to_cq(cq);
  ibv_qp* qp = ibv_create_qp(pd_, &qp_init);
  move(qp, IBV_QPS_RTS);
  ibv_poll_cq_attr poll{};
  EXPECT_EQ(ibv_start_poll(cq, &poll), ENOENT);
  ibv_send_wr send{.wr_id = 3, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(qp, &send, &bad), 0);
  ASSERT_EQ(ibv_start_poll(cq, &poll), 0);
  EXPECT_EQ(ibv_wc_read_byte_len(cq), 8u);
  ASSERT_EQ(ibv_next_poll(cq), 0);
  EXPECT_EQ(cq->wr_id, 3u);
  EXPECT_EQ(ibv_wc_read_qp_num(cq), qp->qp_num);
  EXPECT_EQ(ibv_next_poll(cq), ENOENT);
  ibv_end_poll(cq);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

TEST_F(VerbsTest, ModifyChecksWhatTheDeviceCannotSee) {
  ibv_qp* qp = make_qp();
  ibv_qp_attr to{.qp_state = IBV_QPS_INIT, .port_num = 2};
  EXPECT_EQ(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PORT), EINVAL);
  to.port_num = 1;
  ASSERT_EQ(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PORT), 0);
  EXPECT_EQ(ibv_modify_qp(qp, &to, 1 << 30), EOPNOTSUPP);
  to.ah_attr = {.grh = {.sgid_index = 1}, .is_global = 0, .port_num = 1};
  EXPECT_EQ(ibv_modify_qp(qp, &to, IBV_QP_AV), EINVAL);
  to.ah_attr.is_global = 1;
  to.ah_attr.grh.sgid_index = 3;
  EXPECT_EQ(ibv_modify_qp(qp, &to, IBV_QP_AV), EINVAL);
  to.ah_attr.grh.sgid_index = 1;
  ASSERT_EQ(ibv_modify_qp(qp, &to, IBV_QP_AV), 0);
  ibv_qp_init_attr init;
  ibv_qp_attr is;
  ASSERT_EQ(ibv_query_qp(qp, &is, 0, &init), 0);
  EXPECT_EQ(is.ah_attr.grh.sgid_index, 1);
  EXPECT_EQ(is.cap.max_send_wr, capabilities_.max_send_wr);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

// The cost of a destruction does not grow with the number of remaining queue pairs: the first quarter of many and the
// last quarter take about the same CPU time.
TEST_F(VerbsTest, ManyQueuePairsAreDestroyedOneAsFastAsTheOther) {
  constexpr std::size_t kMany = 4000, kQuarter = kMany / 4;
  const auto cpu_time = [] {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
  };
  std::vector<ibv_qp*> all(kMany);
  for (auto& qp : all) ASSERT_NE(qp = make_qp(), nullptr);
  std::vector<double> quarters;
  for (std::size_t i = 0; i < kMany;) {
    const double begin = cpu_time();
    for (std::size_t end = i + kQuarter; i < end; ++i) ASSERT_EQ(ibv_destroy_qp(all[kMany - 1 - i]), 0);
    quarters.push_back(cpu_time() - begin);
  }
  EXPECT_LT(quarters.front(), 6 * quarters.back());
}

TEST_F(VerbsTest, RefusesWithTheRightErrno) {
  ibv_qp_init_attr init = attributes(4097);
  EXPECT_EQ(ibv_create_qp(pd_, &init), nullptr);
  EXPECT_EQ(errno, EINVAL);
  init = attributes();
  init.qp_type = IBV_QPT_UD;
  EXPECT_EQ(ibv_create_qp(pd_, &init), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  init.qp_type = ibv_qp_type(77);
  EXPECT_EQ(ibv_create_qp(pd_, &init), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_create_cq(context_, 0, nullptr, nullptr, 0), nullptr);
  EXPECT_EQ(ibv_create_cq(context_, 1, nullptr, nullptr, 2), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_alloc_mw(pd_, IBV_MW_TYPE_1), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(ibv_resize_cq(cq_, 0), EINVAL);
}

}  // namespace

DevicePort* device_port(std::uint32_t device) { return device == 0 ? current_port : nullptr; }

}  // namespace rnicsim
