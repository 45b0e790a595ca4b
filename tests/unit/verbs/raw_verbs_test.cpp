// SPDX-License-Identifier: Apache-2.0
// Raw packet queue pairs: refusals by the library, and commands to the device.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>

#include "tests/unit/verbs/raw_verbs.h"

namespace rnicsim {
namespace {

TEST_F(RawVerbsTest, TheDeviceTellsOfThem) {
  ibv_device_attr_ex device;
  ASSERT_EQ(ibv_query_device_ex(context_, nullptr, &device), 0);
  EXPECT_TRUE(ibv_is_qpt_supported(device.rss_caps.supported_qpts, IBV_QPT_RAW_PACKET));
  EXPECT_FALSE(ibv_is_qpt_supported(device.rss_caps.supported_qpts, IBV_QPT_UD));
  EXPECT_EQ(device.rss_caps.rx_hash_function, IBV_RX_HASH_FUNC_TOEPLITZ);
  EXPECT_EQ(device.rss_caps.rx_hash_fields_mask, 0x1ffu | IBV_RX_HASH_INNER);
  EXPECT_EQ(device.rss_caps.max_rwq_indirection_tables, 4u);
  EXPECT_EQ(device.rss_caps.max_rwq_indirection_table_size, 8u);
  EXPECT_EQ(device.max_wq_type_rq, 100u);
  EXPECT_EQ(device.raw_packet_caps, std::uint32_t{IBV_RAW_PACKET_CAP_IP_CSUM | IBV_RAW_PACKET_CAP_CVLAN_STRIPPING |
                                                  IBV_RAW_PACKET_CAP_SCATTER_FCS});
  EXPECT_TRUE(device.orig_attr.device_cap_flags & IBV_DEVICE_RAW_IP_CSUM);
  EXPECT_TRUE(device.orig_attr.device_cap_flags & IBV_DEVICE_MANAGED_FLOW_STEERING);
  EXPECT_EQ(device.device_cap_flags_ex, device.orig_attr.device_cap_flags | IBV_DEVICE_RAW_SCATTER_FCS);
  EXPECT_EQ(device.tso_caps.max_tso, 1u << 16);
  EXPECT_EQ(device.tso_caps.supported_qpts, 1u << IBV_QPT_RAW_PACKET);
}

TEST_F(RawVerbsTest, QueuePair) {
  ibv_qp* qp = make_qp();
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(asked<abi::CreateQp>(abi::CommandOpcode::create_qp)->context.transport, abi::Transport::raw);
  EXPECT_EQ(asked<abi::CreateQp>(abi::CommandOpcode::create_qp)->context.inline_receive, 0);
  to_rts(qp);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);

  EXPECT_EQ(refusal_of_qp([](auto&) {}), 0);
  EXPECT_EQ(refusal_of_qp([](auto& wanted) { ask_operations(wanted, IBV_QP_EX_WITH_SEND); }), 0);
  EXPECT_EQ(refusal_of_qp([](auto& wanted) { ask_operations(wanted, IBV_QP_EX_WITH_SEND_WITH_IMM); }), EOPNOTSUPP);
  ibv_srq queue{};
  EXPECT_EQ(refusal_of_qp([&](auto& wanted) { wanted.srq = &queue; }), EINVAL);
  for (const auto flag : {IBV_QP_CREATE_SOURCE_QPN, IBV_QP_CREATE_PCI_WRITE_END_PADDING})
    EXPECT_EQ(refusal_of_qp([&](auto& wanted) { ask_flags(wanted, flag); }), EOPNOTSUPP);
  port_.refused[abi::CommandOpcode::create_qp] = EPERM;
  EXPECT_EQ(refusal_of_qp([](auto&) {}), EPERM);
}

TEST_F(RawVerbsTest, SendsWithChecksums) {
  ibv_qp* qp = make_qp();
  const auto made = asked<abi::CreateQp>(abi::CommandOpcode::create_qp)->context;
  to_rts(qp);
  port_.executes = false;
  char frame[64] = {};
  ibv_sge sge{reinterpret_cast<std::uint64_t>(frame), sizeof frame, 7};
  ibv_send_wr wr{.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_IP_CSUM};
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(qp, &wr, &bad), 0);
  const auto& control = *memory<abi::ControlSegment>(made.send_ring);
  EXPECT_EQ(control.qpn_flags & 0xff, abi::ControlSegment::kChecksums);
  EXPECT_EQ(control.segments, 2) << "control and data, nothing between them";
  EXPECT_EQ(memory<abi::DataSegment>(made.send_ring + sizeof control)->byte_count, sizeof frame);
  wr.opcode = IBV_WR_RDMA_WRITE;
  EXPECT_EQ(ibv_post_send(qp, &wr, &bad), 0) << "of another transport: the device says so in a completion";
  wr.opcode = IBV_WR_DRIVER1;
  EXPECT_EQ(ibv_post_send(qp, &wr, &bad), EINVAL);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(RawVerbsTest, FlagsOfFrames) {
  constexpr std::uint8_t kRings = abi::Qpc::kHasSend | abi::Qpc::kHasReceive;
  const std::pair<std::uint32_t, std::uint8_t> flags[] = {
      {IBV_QP_CREATE_CVLAN_STRIPPING, abi::Qpc::kStripVlan},
      {IBV_QP_CREATE_SCATTER_FCS, abi::Qpc::kScatterFcs},
      {IBV_QP_CREATE_CVLAN_STRIPPING | IBV_QP_CREATE_SCATTER_FCS, abi::Qpc::kStripVlan | abi::Qpc::kScatterFcs}};
  for (const auto& [flag, of_context] : flags) {
    const auto ask = [flag = flag](auto& wanted) { ask_flags(wanted, flag); };
    EXPECT_EQ(refusal_of_qp(ask), 0);
    EXPECT_EQ(asked<abi::CreateQp>(abi::CommandOpcode::create_qp)->context.flags, kRings | of_context);
    EXPECT_EQ(refusal_of_qp(ask, IBV_QPT_UD), EINVAL);
    EXPECT_EQ(refusal_of_qp(ask, IBV_QPT_RC), EINVAL);
  }
  EXPECT_EQ(refusal_of_qp([](auto& wanted) { wanted.create_flags = IBV_QP_CREATE_SCATTER_FCS; }), 0);
  EXPECT_EQ(asked<abi::CreateQp>(abi::CommandOpcode::create_qp)->context.flags, kRings) << "the mask names them";
}

TEST_F(RawVerbsTest, HeadersOfSegmentsAtCreation) {
  const auto headers = [](std::uint16_t bytes) { return [bytes](auto& wanted) { ask_headers(wanted, bytes); }; };
  EXPECT_EQ(refusal_of_qp(headers(128)), 0);
  EXPECT_EQ(refusal_of_qp(headers(129)), EINVAL);
  EXPECT_EQ(refusal_of_qp(headers(64), IBV_QPT_RC), EOPNOTSUPP);
  EXPECT_EQ(refusal_of_qp(headers(64), IBV_QPT_UD), EOPNOTSUPP);
  const auto operations = [](int bytes) {
    return [bytes](auto& wanted) {
      if (bytes >= 0) ask_headers(wanted, std::uint16_t(bytes));
      ask_operations(wanted, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO);
    };
  };
  EXPECT_EQ(refusal_of_qp(operations(1)), 0);
  EXPECT_EQ(refusal_of_qp(operations(0)), EINVAL);
  EXPECT_EQ(refusal_of_qp(operations(-1)), EINVAL);
  EXPECT_EQ(refusal_of_qp(operations(-1), IBV_QPT_RC), EOPNOTSUPP);
  auto wanted = qp_attributes();
  ask_headers(wanted, 128);
  ibv_qp* qp = ibv_create_qp_ex(context_, &wanted);
  const auto log_blocks = asked<abi::CreateQp>(abi::CommandOpcode::create_qp)->context.log_send_blocks;
  EXPECT_EQ(log_blocks, 4) << "four work requests of three blocks each";
  EXPECT_GE(wanted.cap.max_send_wr, 4u);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(RawVerbsTest, ASegmentedMessage) {
  ibv_qp* qp = make_segmenting_qp();
  const std::uint64_t ring = asked<abi::CreateQp>(abi::CommandOpcode::create_qp)->context.send_ring;
  port_.executes = false;
  auto wr = segmented();
  wr.send_flags = IBV_SEND_IP_CSUM;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(qp, &wr, &bad), 0);
  ibv_qp_ex* extended = ibv_qp_to_qp_ex(qp);
  ibv_wr_start(extended);
  extended->wr_flags = IBV_SEND_IP_CSUM;
  ibv_wr_send_tso(extended, headers_, 54, 1000);
  ibv_wr_set_sge(extended, sge_.lkey, sge_.addr, sge_.length);
  ASSERT_EQ(ibv_wr_complete(extended), 0);
  for (const std::uint64_t at : {ring, ring + 2 * abi::kSendBlock}) {
    const auto& control = *memory<abi::ControlSegment>(at);
    EXPECT_EQ(control.opcode, abi::SendOpcode::tso);
    EXPECT_EQ(control.qpn_flags & 0xff, abi::ControlSegment::kChecksums);
    EXPECT_EQ(control.segments, 7);
    const auto& tso = *memory<abi::TsoSegment>(at + 16);
    EXPECT_EQ(tso.mss, 1000);
    EXPECT_EQ(tso.header_bytes, 54);
    EXPECT_EQ(std::memcmp(memory<void>(at + 32), headers_, 54), 0);
    const auto& data = *memory<abi::DataSegment>(at + 96);
    EXPECT_EQ(data.byte_count, 3500u);
    EXPECT_EQ(data.address, 0x1000u);
  }
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(RawVerbsTest, ASegmentedMessageCompletesAsOne) {
  ibv_qp* qp = make_segmenting_qp();
  auto wr = segmented();
  wr.wr_id = 9;
  wr.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(qp, &wr, &bad), 0);
  ibv_wc wc;
  ASSERT_EQ(ibv_poll_cq(cq_, 1, &wc), 1);
  EXPECT_EQ(wc.wr_id, 9u);
  EXPECT_EQ(wc.opcode, IBV_WC_TSO);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(RawVerbsTest, SegmentedMessagesAreRefused) {
  ibv_qp* qp = make_segmenting_qp();
  port_.executes = false;
  const auto posted = [&](const ibv_send_wr& given) {
    ibv_send_wr wr = given;
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(qp, &wr, &bad);
  };
  ibv_qp_ex* extended = ibv_qp_to_qp_ex(qp);
  const auto built = [&](void* headers, std::uint16_t header_bytes, std::uint16_t mss) {
    ibv_wr_start(extended);
    ibv_wr_send_tso(extended, headers, header_bytes, mss);
    ibv_wr_set_sge(extended, sge_.lkey, sge_.addr, sge_.length);
    return ibv_wr_complete(extended);
  };
  EXPECT_EQ(posted(segmented(64)), 0);
  EXPECT_EQ(built(headers_, 64, 1), 0);
  const std::pair<std::uint16_t, std::uint16_t> wrong[] = {{0, 1000}, {65, 1000}, {54, 0}};
  for (const auto& [header_bytes, mss] : wrong) {
    EXPECT_EQ(posted(segmented(header_bytes, mss)), EINVAL) << header_bytes << ", " << mss;
    EXPECT_EQ(built(headers_, header_bytes, mss), EINVAL) << header_bytes << ", " << mss;
  }
  auto wr = segmented();
  wr.tso.hdr = nullptr;
  EXPECT_EQ(posted(wr), EINVAL);
  EXPECT_EQ(built(nullptr, 54, 1000), EINVAL);
  wr = segmented();
  wr.send_flags = IBV_SEND_INLINE;
  sge_.length = 8;
  EXPECT_EQ(posted(wr), EINVAL);
  ibv_wr_start(extended);
  ibv_wr_send_tso(extended, headers_, 54, 1000);
  ibv_wr_set_inline_data(extended, headers_, 8);
  EXPECT_EQ(ibv_wr_complete(extended), EINVAL);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

// Without headers, or on another transport: the device reports the error in a completion.
TEST_F(RawVerbsTest, SegmentedMessagesWhereTheyAreNotDone) {
  port_.executes = false;
  for (const auto type : {IBV_QPT_RAW_PACKET, IBV_QPT_RC}) {
    auto wanted = qp_attributes(type);
    ask_operations(wanted, IBV_QP_EX_WITH_SEND);
    ibv_qp* qp = ibv_create_qp_ex(context_, &wanted);
    ASSERT_NE(qp, nullptr);
    const std::uint64_t ring = asked<abi::CreateQp>(abi::CommandOpcode::create_qp)->context.send_ring;
    ASSERT_EQ(move(qp, IBV_QPS_ERR), 0) << "where it may be posted";
    auto wr = segmented();
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(qp, &wr, &bad), 0);
    EXPECT_EQ(memory<abi::ControlSegment>(ring)->opcode, abi::SendOpcode::tso);
    EXPECT_EQ(memory<abi::ControlSegment>(ring)->segments, 1);
    ibv_qp_ex* extended = ibv_qp_to_qp_ex(qp);
    ibv_wr_start(extended);
    ibv_wr_send_tso(extended, headers_, 54, 1000);
    EXPECT_EQ(ibv_wr_complete(extended), EOPNOTSUPP);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
  }
}

TEST_F(RawVerbsTest, OtherTransportsBuildersAreRefused) {
  ibv_qp* qp = make_segmenting_qp();
  port_.executes = false;
  ibv_qp_ex* extended = ibv_qp_to_qp_ex(qp);
  const auto built = [&](const std::function<void()>& begin) {
    ibv_wr_start(extended);
    begin();
    ibv_wr_set_sge(extended, sge_.lkey, sge_.addr, sge_.length);
    return ibv_wr_complete(extended);
  };
  EXPECT_EQ(built([&] { ibv_wr_send(extended); }), 0);
  EXPECT_EQ(built([&] { ibv_wr_send_imm(extended, 1); }), EOPNOTSUPP);
  EXPECT_EQ(built([&] { ibv_wr_send_inv(extended, 1); }), EOPNOTSUPP);
  EXPECT_EQ(built([&] { ibv_wr_rdma_write(extended, 1, 0); }), EOPNOTSUPP);
  EXPECT_EQ(built([&] { ibv_wr_rdma_write_imm(extended, 1, 0, 1); }), EOPNOTSUPP);
  EXPECT_EQ(built([&] { ibv_wr_rdma_read(extended, 1, 0); }), EOPNOTSUPP);
  EXPECT_EQ(built([&] { ibv_wr_atomic_fetch_add(extended, 1, 0, 1); }), EOPNOTSUPP);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(RawVerbsTest, ChecksumsAndTagsOfReceives) {
  ibv_cq_init_attr_ex wanted{.cqe = 8, .wc_flags = IBV_WC_EX_WITH_FLOW_TAG | IBV_WC_EX_WITH_CVLAN};
  ibv_cq_ex* cq = ibv_create_cq_ex(context_, &wanted);
  ASSERT_NE(cq, nullptr);
  auto attributes = qp_attributes();
  attributes.send_cq = attributes.recv_cq = ibv_cq_ex_to_cq(cq);
  ibv_qp* qp = ibv_create_qp_ex(context_, &attributes);
  to_rts(qp);
  const auto arrives = [&](std::uint8_t flags) {
    port_.flags = flags;
    port_.complete(qp->qp_num, abi::CqeOpcode::receive_send, 0, abi::CqeSyndrome::success);
  };
  ibv_poll_cq_attr poll{};
  arrives(abi::Cqe::kChecksumsRight | abi::Cqe::kFlowTag);
  ASSERT_EQ(ibv_start_poll(cq, &poll), 0);
  EXPECT_EQ(ibv_wc_read_wc_flags(cq), unsigned(IBV_WC_IP_CSUM_OK));
  EXPECT_EQ(ibv_wc_read_flow_tag(cq), 0x01020304u);
  EXPECT_EQ(ibv_wc_read_cvlan(cq), 0);
  ibv_end_poll(cq);
  arrives(abi::Cqe::kVlan);
  ASSERT_EQ(ibv_start_poll(cq, &poll), 0);
  EXPECT_EQ(ibv_wc_read_flow_tag(cq), 0u);
  EXPECT_EQ(ibv_wc_read_cvlan(cq), 0x6123);
  ibv_end_poll(cq);
  arrives(0);
  ASSERT_EQ(ibv_start_poll(cq, &poll), 0);
  EXPECT_EQ(ibv_wc_read_wc_flags(cq), 0u);
  EXPECT_EQ(ibv_wc_read_flow_tag(cq), 0u);
  ibv_end_poll(cq);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

}  // namespace

DevicePort* device_port(std::uint32_t device) { return device == 0 ? raw_port : nullptr; }

}  // namespace rnicsim
