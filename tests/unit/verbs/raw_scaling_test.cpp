// SPDX-License-Identifier: Apache-2.0
// Work queues, indirection tables, and RSS queue pairs: refusals, and commands to the device.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "tests/unit/verbs/raw_verbs.h"

namespace rnicsim {
namespace {

TEST_F(RawVerbsTest, WorkQueueCreation) {
  EXPECT_EQ(refusal_of_wq([](auto&) {}), 0);
  EXPECT_EQ(refusal_of_wq([](auto& wanted) { wanted.wq_type = ibv_wq_type(1); }), EINVAL);
  EXPECT_EQ(refusal_of_wq([](auto& wanted) { wanted.comp_mask = IBV_WQ_INIT_ATTR_RESERVED; }), EINVAL);
  const std::pair<std::uint32_t, int> answers[] = {
      {IBV_WQ_FLAGS_DELAY_DROP, EOPNOTSUPP}, {IBV_WQ_FLAGS_PCI_WRITE_END_PADDING, EOPNOTSUPP}, {16, EINVAL}};
  for (const auto& [flag, answer] : answers)
    EXPECT_EQ(refusal_of_wq([flag = flag](auto& wanted) {
                wanted.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
                wanted.create_flags = flag;
              }),
              answer);
  EXPECT_EQ(refusal_of_wq([](auto& wanted) { wanted.create_flags = 1; }), 0) << "the mask does not name them";
  EXPECT_EQ(refusal_of_wq([](auto& wanted) { wanted.max_wr = 4097; }), EINVAL);
  EXPECT_EQ(refusal_of_wq([](auto& wanted) { wanted.max_wr = 0; }), EINVAL);
  EXPECT_EQ(refusal_of_wq([](auto& wanted) { wanted.max_sge = 17; }), EINVAL);
  EXPECT_EQ(refusal_of_wq([](auto& wanted) { wanted.pd = nullptr; }), EINVAL);
  EXPECT_EQ(refusal_of_wq([](auto& wanted) { wanted.cq = nullptr; }), EINVAL);
  ibv_context* other = open();
  ibv_pd* pd = ibv_alloc_pd(other);
  ibv_cq* cq = ibv_create_cq(other, 1, nullptr, nullptr, 0);
  EXPECT_EQ(refusal_of_wq([&](auto& wanted) { wanted.pd = pd; }), EINVAL);
  EXPECT_EQ(refusal_of_wq([&](auto& wanted) { wanted.cq = cq; }), EINVAL);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_EQ(ibv_dealloc_pd(pd), 0);
  EXPECT_EQ(ibv_close_device(other), 0);
  port_.refused[abi::CommandOpcode::create_qp] = EPERM;
  EXPECT_EQ(refusal_of_wq([](auto&) {}), EPERM);
}

TEST_F(RawVerbsTest, AWorkQueueIsARawPacketQueuePairWithoutSends) {
  int owner = 0;
  auto wanted = wq_attributes();
  wanted.wq_context = &owner;
  ibv_wq* wq = ibv_create_wq(context_, &wanted);
  ASSERT_NE(wq, nullptr);
  EXPECT_EQ(wq->wq_context, &owner);
  EXPECT_EQ(wq->state, IBV_WQS_RESET);
  EXPECT_EQ(wq->pd, pd_);
  EXPECT_EQ(wq->cq, cq_);
  EXPECT_EQ(wanted.max_wr, 8u);
  EXPECT_EQ(wanted.max_sge, 4u);
  const auto made = asked<abi::CreateQp>(abi::CommandOpcode::create_qp)->context;
  EXPECT_EQ(made.transport, abi::Transport::raw);
  EXPECT_EQ(made.flags, abi::Qpc::kHasReceive);
  EXPECT_EQ(made.receive_cqn, cq_->handle);
  EXPECT_EQ(ibv_destroy_cq(cq_), EBUSY);

  ibv_recv_wr wr{.wr_id = 77};
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_wq_recv(wq, &wr, &bad), EINVAL);
  EXPECT_EQ(bad, &wr);
  const auto commands = port_.commands.size();
  ASSERT_EQ(move(wq, IBV_WQS_RDY), 0);
  EXPECT_EQ(wq->state, IBV_WQS_RDY);
  EXPECT_EQ(port_.commands.size(), commands + 2) << "INIT and RTR";
  EXPECT_EQ(ibv_post_wq_recv(wq, &wr, &bad), 0);
  port_.complete(wq->wq_num, abi::CqeOpcode::receive_send, 0, abi::CqeSyndrome::success);
  ibv_wc wc;
  ASSERT_EQ(ibv_poll_cq(cq_, 1, &wc), 1);
  EXPECT_EQ(wc.wr_id, 77u);
  EXPECT_EQ(wc.opcode, IBV_WC_RECV);
  EXPECT_EQ(wc.qp_num, wq->wq_num);
  wr.next = &wr;  // ends when the queue is full
  EXPECT_EQ(ibv_post_wq_recv(wq, &wr, &bad), ENOMEM);
  ibv_sge sges[5] = {};
  wr = {.sg_list = sges, .num_sge = 5};
  ASSERT_EQ(move(wq, IBV_WQS_RESET), 0);
  ASSERT_EQ(move(wq, IBV_WQS_RDY), 0);
  EXPECT_EQ(ibv_post_wq_recv(wq, &wr, &bad), EINVAL);
  const auto handle = wq->handle;
  wq->handle = 12345;
  EXPECT_EQ(ibv_destroy_wq(wq), ENOENT);
  EXPECT_EQ(move(wq, IBV_WQS_ERR), ENOENT);
  wq->handle = handle;
  EXPECT_EQ(ibv_destroy_wq(wq), 0);
}

TEST_F(RawVerbsTest, AWorkQueuesFlags) {
  const std::pair<std::uint32_t, std::uint8_t> flags[] = {
      {0, 0}, {IBV_WQ_FLAGS_CVLAN_STRIPPING, abi::Qpc::kStripVlan}, {IBV_WQ_FLAGS_SCATTER_FCS, abi::Qpc::kScatterFcs}};
  for (const auto& [flag, of_context] : flags) {
    EXPECT_EQ(refusal_of_wq([flag = flag](auto& wanted) {
                wanted.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
                wanted.create_flags = flag;
              }),
              0);
    EXPECT_EQ(asked<abi::CreateQp>(abi::CommandOpcode::create_qp)->context.flags, abi::Qpc::kHasReceive | of_context);
  }
}

TEST_F(RawVerbsTest, WorkQueueStates) {
  ibv_wq* wq = make_wq();
  const auto modify = [&](std::uint32_t mask, ibv_wq_state state, ibv_wq_state current, std::uint32_t flags = 0) {
    ibv_wq_attr to{.attr_mask = mask, .wq_state = state, .curr_wq_state = current, .flags_mask = flags};
    return ibv_modify_wq(wq, &to);
  };
  constexpr std::uint32_t kBoth = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE;
  EXPECT_EQ(modify(0, IBV_WQS_RDY, IBV_WQS_RESET), 0);
  EXPECT_EQ(wq->state, IBV_WQS_RESET);
  EXPECT_EQ(modify(IBV_WQ_ATTR_RESERVED, IBV_WQS_RDY, IBV_WQS_RESET), EINVAL);
  EXPECT_EQ(modify(kBoth, IBV_WQS_RDY, IBV_WQS_ERR), EINVAL) << "another current state";
  EXPECT_EQ(modify(IBV_WQ_ATTR_STATE, IBV_WQS_UNKNOWN, IBV_WQS_RESET), EINVAL);
  EXPECT_EQ(modify(IBV_WQ_ATTR_FLAGS, IBV_WQS_RESET, IBV_WQS_RESET, IBV_WQ_FLAGS_SCATTER_FCS), EOPNOTSUPP);
  EXPECT_EQ(modify(IBV_WQ_ATTR_FLAGS, IBV_WQS_RESET, IBV_WQS_RESET, 1u << 9), EINVAL);
  EXPECT_EQ(modify(IBV_WQ_ATTR_FLAGS, IBV_WQS_RESET, IBV_WQS_RESET), 0);
  constexpr auto kReset = IBV_WQS_RESET, kReady = IBV_WQS_RDY, kError = IBV_WQS_ERR;
  for (const auto to : {kReset, kReady, kReady, kReset, kReady, kError, kError}) {
    EXPECT_EQ(modify(kBoth, to, wq->state), 0);
    EXPECT_EQ(wq->state, to);
  }
  EXPECT_EQ(move(wq, IBV_WQS_RDY), EINVAL) << "from ERR by RESET only";
  EXPECT_EQ(wq->state, IBV_WQS_ERR);
  EXPECT_EQ(move(wq, IBV_WQS_RESET), 0);
  EXPECT_EQ(move(wq, IBV_WQS_ERR), 0);
  EXPECT_EQ(move(wq, IBV_WQS_RESET), 0);
  port_.refused[abi::CommandOpcode::modify_qp] = EIO;
  EXPECT_EQ(move(wq, IBV_WQS_RDY), EIO);
  EXPECT_EQ(wq->state, IBV_WQS_RESET);
  EXPECT_EQ(ibv_destroy_wq(wq), 0);
}

TEST_F(RawVerbsTest, AWorkQueueHasItsOwnEvent) {
  ibv_wq* wq = make_wq();
  ASSERT_EQ(move(wq, IBV_WQS_RDY), 0);
  port_.raise(abi::EventType::qp_fatal, wq->wq_num);
  ibv_async_event event;
  ASSERT_EQ(ibv_get_async_event(context_, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_WQ_FATAL);
  EXPECT_EQ(event.element.wq, wq);
  ibv_ack_async_event(&event);
  EXPECT_EQ(wq->events_completed, 1u);
  EXPECT_EQ(ibv_destroy_wq(wq), 0);
}

TEST_F(RawVerbsTest, Tables) {
  ibv_wq* first = make_wq();
  ibv_wq* second = make_wq();
  ibv_rwq_ind_table* table = make_table({first, second, first, first});
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->context, context_);
  EXPECT_EQ(ibv_destroy_wq(first), EBUSY);
  EXPECT_EQ(ibv_destroy_wq(second), EBUSY);
  const auto handle = table->ind_tbl_handle;
  table->ind_tbl_handle = 999;
  EXPECT_EQ(ibv_destroy_rwq_ind_table(table), ENOENT);
  table->ind_tbl_handle = handle;
  EXPECT_EQ(ibv_destroy_rwq_ind_table(table), 0);

  EXPECT_EQ(make_table({first, nullptr}), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(make_table(std::vector<ibv_wq*>(16, first)), nullptr) << "more than the device takes";
  EXPECT_EQ(errno, EINVAL);
  ibv_rwq_ind_table_init_attr wanted{.log_ind_tbl_size = 64, .ind_tbl = &first};
  EXPECT_EQ(ibv_create_rwq_ind_table(context_, &wanted), nullptr);
  EXPECT_EQ(errno, EINVAL);
  wanted = {.ind_tbl = &first, .comp_mask = 1};
  EXPECT_EQ(ibv_create_rwq_ind_table(context_, &wanted), nullptr);
  EXPECT_EQ(errno, EINVAL);
  wanted = {};
  EXPECT_EQ(ibv_create_rwq_ind_table(context_, &wanted), nullptr);
  EXPECT_EQ(errno, EINVAL);
  first->wq_type = ibv_wq_type(1);
  EXPECT_EQ(make_table({first}), nullptr);
  EXPECT_EQ(errno, EINVAL);
  first->wq_type = IBV_WQT_RQ;
  ibv_context* other = open();
  wanted = {.ind_tbl = &first};
  EXPECT_EQ(ibv_create_rwq_ind_table(other, &wanted), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_close_device(other), 0);
  EXPECT_EQ(ibv_destroy_wq(first), 0);
  EXPECT_EQ(ibv_destroy_wq(second), 0);
}

TEST_F(RawVerbsTest, ScalingQueuePair) {
  ibv_wq* first = make_wq();
  ibv_wq* second = make_wq();
  ibv_rwq_ind_table* table = make_table({second, first});
  auto wanted = scaling_attributes(table);
  const auto qps = times(abi::CommandOpcode::create_qp);
  ibv_qp* qp = ibv_create_qp_ex(context_, &wanted);
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(times(abi::CommandOpcode::create_qp), qps);
  const auto made = asked<abi::CreateRss>(abi::CommandOpcode::create_rss);
  EXPECT_EQ(made->fields, 3u);
  EXPECT_EQ(made->log_queues, 1);
  EXPECT_EQ(std::memcmp(made->key, key_, sizeof key_), 0);
  EXPECT_EQ(made->queues[0], second->wq_num);
  EXPECT_EQ(made->queues[1], first->wq_num);
  EXPECT_EQ(ibv_destroy_rwq_ind_table(table), EBUSY);
  EXPECT_EQ(ibv_dealloc_pd(pd_), EBUSY);

  EXPECT_EQ(move(qp, IBV_QPS_RTR), EINVAL);
  EXPECT_EQ(move(qp, IBV_QPS_INIT), EINVAL) << "without its port";
  EXPECT_EQ(move(qp, IBV_QPS_INIT, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_QKEY), EINVAL);
  to_rts(qp);
  EXPECT_EQ(times(abi::CommandOpcode::modify_qp), 0u);
  ibv_qp_attr attributes;
  ibv_qp_init_attr initial;
  ASSERT_EQ(ibv_query_qp(qp, &attributes, IBV_QP_STATE, &initial), 0);
  EXPECT_EQ(attributes.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(attributes.port_num, 1);
  EXPECT_EQ(initial.qp_type, IBV_QPT_RAW_PACKET);
  ibv_recv_wr receive{};
  ibv_recv_wr* bad_receive = nullptr;
  EXPECT_EQ(ibv_post_recv(qp, &receive, &bad_receive), EINVAL);
  ibv_send_wr send{.opcode = IBV_WR_SEND};
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(qp, &send, &bad), EINVAL);
  EXPECT_EQ(move(qp, IBV_QPS_ERR), 0);
  EXPECT_EQ(move(qp, IBV_QPS_INIT, IBV_QP_STATE | IBV_QP_PORT), EINVAL);
  EXPECT_EQ(move(qp, IBV_QPS_RESET), 0);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(times(abi::CommandOpcode::destroy_rss), 1u);
  EXPECT_EQ(ibv_destroy_rwq_ind_table(table), 0);
  EXPECT_EQ(ibv_destroy_wq(first), 0);
  EXPECT_EQ(ibv_destroy_wq(second), 0);
}

TEST_F(RawVerbsTest, ScalingIsRefused) {
  ibv_wq* wq = make_wq();
  ibv_rwq_ind_table* table = make_table({wq});
  const auto refusal = [&](auto&& change) { return refusal_of_scaling(table, change); };
  const auto with_fields = [&](std::uint64_t fields) {
    return refusal([&](auto& wanted) { wanted.rx_hash_conf.rx_hash_fields_mask = fields; });
  };
  EXPECT_EQ(refusal([](auto&) {}), 0);
  EXPECT_EQ(refusal([](auto& wanted) { wanted.comp_mask &= ~unsigned(IBV_QP_INIT_ATTR_IND_TABLE); }), EINVAL);
  EXPECT_EQ(refusal([](auto& wanted) { wanted.comp_mask &= ~unsigned(IBV_QP_INIT_ATTR_RX_HASH); }), EINVAL);
  EXPECT_EQ(refusal([](auto& wanted) { wanted.qp_type = IBV_QPT_RC; }), EOPNOTSUPP);
  EXPECT_EQ(refusal([](auto& wanted) { wanted.cap.max_recv_wr = 1; }), EINVAL);
  EXPECT_EQ(refusal([](auto& wanted) { wanted.cap.max_recv_sge = 1; }), EINVAL);
  EXPECT_EQ(refusal([](auto& wanted) { wanted.cap.max_send_wr = 1; }), EOPNOTSUPP);
  EXPECT_EQ(refusal([](auto& wanted) { ask_flags(wanted, IBV_QP_CREATE_SCATTER_FCS); }), EINVAL);
  ibv_srq srq{};
  EXPECT_EQ(refusal([&](auto& wanted) { wanted.srq = &srq; }), EINVAL);
  EXPECT_EQ(refusal([](auto& wanted) { wanted.rwq_ind_tbl = nullptr; }), EINVAL);
  for (const std::uint8_t function : {0, 2, 3, 255})
    EXPECT_EQ(refusal([=](auto& wanted) { wanted.rx_hash_conf.rx_hash_function = function; }), EINVAL) << +function;
  for (const std::uint8_t bytes : {0, 1, 39, 41, 255})
    EXPECT_EQ(refusal([=](auto& wanted) { wanted.rx_hash_conf.rx_hash_key_len = bytes; }), EINVAL) << +bytes;
  EXPECT_EQ(refusal([](auto& wanted) { wanted.rx_hash_conf.rx_hash_key = nullptr; }), EINVAL);
  for (const std::uint64_t fields : {0x0ull, 0x1ull, 0x3ull | 0x30, 0xcull | 0xc0, 0x103ull, 0x80000033ull})
    EXPECT_EQ(with_fields(fields), 0) << fields;
  for (const std::uint64_t fields : {0x5ull, 0x90ull, 0x110ull, 0x140ull, 0x200ull, 1ull << 40})
    EXPECT_EQ(with_fields(fields), EINVAL) << fields;
  ibv_context* other = open();
  table->context = other;
  EXPECT_EQ(refusal([](auto&) {}), EINVAL);
  table->context = context_;
  EXPECT_EQ(ibv_close_device(other), 0);
  const int handle = std::exchange(table->ind_tbl_handle, 999);
  EXPECT_EQ(refusal([](auto&) {}), ENOENT);
  table->ind_tbl_handle = handle;
  port_.refused[abi::CommandOpcode::create_rss] = ENOMEM;
  EXPECT_EQ(refusal([](auto&) {}), ENOMEM);
  EXPECT_EQ(ibv_destroy_rwq_ind_table(table), 0);
  EXPECT_EQ(ibv_destroy_wq(wq), 0);
}

}  // namespace

}  // namespace rnicsim
