// SPDX-License-Identifier: Apache-2.0
// Fixture for tests of raw packets: a fake device that records commands, and attributes that a device accepts.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "tests/unit/verbs/fake_port.h"

namespace rnicsim {

inline FakePort* raw_port = nullptr;

class RawVerbsTest : public ::testing::Test {
 protected:
  explicit RawVerbsTest(std::uint64_t features = abi::feature::kRc | abi::feature::kUd | abi::feature::kRaw) {
    port_.features = features;
  }
  void SetUp() override {
    raw_port = &port_;
    context_ = open();
    ASSERT_NE(context_, nullptr);
    pd_ = ibv_alloc_pd(context_);
    cq_ = ibv_create_cq(context_, 64, nullptr, nullptr, 0);
    ASSERT_NE(cq_, nullptr);
  }
  void TearDown() override {
    EXPECT_EQ(ibv_destroy_cq(cq_), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd_), 0);
    EXPECT_EQ(ibv_close_device(context_), 0);
    EXPECT_EQ(port_.allocations, 0);
  }
  static ibv_context* open() {
    ibv_device** list = ibv_get_device_list(nullptr);
    ibv_context* context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    return context;
  }

  // The last mailbox with this opcode.
  template <class Mailbox>
  std::optional<Mailbox> asked(abi::CommandOpcode opcode) const {
    std::optional<Mailbox> last;
    for (const auto& input : port_.commands)
      if (provider::decode<abi::CommandHeader>(input).opcode == std::uint16_t(opcode))
        last = provider::decode<Mailbox>(input);
    return last;
  }
  std::size_t times(abi::CommandOpcode opcode) const {
    return std::size_t(std::ranges::count_if(port_.commands, [&](const auto& input) {
      return provider::decode<abi::CommandHeader>(input).opcode == std::uint16_t(opcode);
    }));
  }

  // --- Queue pairs.
  ibv_qp_init_attr_ex qp_attributes(ibv_qp_type type = IBV_QPT_RAW_PACKET) const {
    ibv_qp_init_attr_ex wanted{};
    wanted.send_cq = wanted.recv_cq = cq_;
    wanted.cap = {4, 4, 2, 2, 0};
    wanted.qp_type = type;
    wanted.comp_mask = IBV_QP_INIT_ATTR_PD;
    wanted.pd = pd_;
    return wanted;
  }
  ibv_qp* make_qp(ibv_qp_type type = IBV_QPT_RAW_PACKET) {
    auto wanted = qp_attributes(type);
    return ibv_create_qp_ex(context_, &wanted);
  }
  int refusal_of_qp(const std::function<void(ibv_qp_init_attr_ex&)>& change, ibv_qp_type type = IBV_QPT_RAW_PACKET) {
    auto wanted = qp_attributes(type);
    change(wanted);
    return refusal<ibv_qp>([&] { return ibv_create_qp_ex(context_, &wanted); }, ibv_destroy_qp);
  }
  static void ask_flags(ibv_qp_init_attr_ex& wanted, std::uint32_t flags) {
    wanted.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
    wanted.create_flags = flags;
  }
  static void ask_headers(ibv_qp_init_attr_ex& wanted, std::uint16_t bytes) {
    wanted.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
    wanted.max_tso_header = bytes;
  }
  static void ask_operations(ibv_qp_init_attr_ex& wanted, std::uint64_t operations) {
    wanted.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    wanted.send_ops_flags = operations;
  }
  // A QP in RTS that supports ibv_post_send() and ibv_wr_*.
  ibv_qp* make_segmenting_qp(std::uint16_t header_bytes = 64) {
    auto wanted = qp_attributes();
    wanted.cap.max_inline_data = 64;
    ask_headers(wanted, header_bytes);
    ask_operations(wanted, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO);
    ibv_qp* qp = ibv_create_qp_ex(context_, &wanted);
    if (qp != nullptr) to_rts(qp);
    return qp;
  }
  ibv_send_wr segmented(std::uint16_t header_bytes = 54, std::uint16_t mss = 1000) {
    ibv_send_wr wr{.sg_list = &sge_, .num_sge = 1, .opcode = IBV_WR_TSO};
    wr.tso = {.hdr = headers_, .hdr_sz = header_bytes, .mss = mss};
    return wr;
  }
  static int move(ibv_qp* qp, ibv_qp_state state, int mask = IBV_QP_STATE) {
    ibv_qp_attr to{};
    to.qp_state = state;
    to.port_num = 1;
    return ibv_modify_qp(qp, &to, mask);
  }
  static void to_rts(ibv_qp* qp) {
    ASSERT_EQ(move(qp, IBV_QPS_INIT, IBV_QP_STATE | IBV_QP_PORT), 0);
    ASSERT_EQ(move(qp, IBV_QPS_RTR), 0);
    ASSERT_EQ(move(qp, IBV_QPS_RTS), 0);
  }
  // Returns 0 and destroys the object if `create` succeeds; otherwise returns errno.
  template <class Object, class Create>
  static int refusal(Create&& create, int (*destroy)(Object*)) {
    errno = 0;
    Object* object = create();
    if (object == nullptr) return errno;
    EXPECT_EQ(destroy(object), 0);
    return 0;
  }

  // --- Work queues.
  ibv_wq_init_attr wq_attributes() const {
    ibv_wq_init_attr wanted{};
    wanted.wq_type = IBV_WQT_RQ;
    wanted.max_wr = 5;
    wanted.max_sge = 3;
    wanted.pd = pd_;
    wanted.cq = cq_;
    return wanted;
  }
  ibv_wq* make_wq() {
    auto wanted = wq_attributes();
    return ibv_create_wq(context_, &wanted);
  }
  int refusal_of_wq(const std::function<void(ibv_wq_init_attr&)>& change) {
    auto wanted = wq_attributes();
    change(wanted);
    return refusal<ibv_wq>([&] { return ibv_create_wq(context_, &wanted); },
                           [](ibv_wq* wq) { return ibv_destroy_wq(wq); });
  }
  static int move(ibv_wq* wq, ibv_wq_state state) {
    ibv_wq_attr to{};
    to.attr_mask = IBV_WQ_ATTR_STATE;
    to.wq_state = state;
    return ibv_modify_wq(wq, &to);
  }

  // --- Receive-side scaling.
  ibv_rwq_ind_table* make_table(std::vector<ibv_wq*> queues) {
    ibv_rwq_ind_table_init_attr wanted{};
    wanted.log_ind_tbl_size = std::uint32_t(std::bit_width(queues.size()) - 1);
    wanted.ind_tbl = queues.data();
    errno = 0;
    return ibv_create_rwq_ind_table(context_, &wanted);
  }
  ibv_qp_init_attr_ex scaling_attributes(ibv_rwq_ind_table* table) {
    auto wanted = qp_attributes();
    wanted.cap = {};
    wanted.send_cq = wanted.recv_cq = nullptr;
    wanted.comp_mask |= IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
    wanted.rwq_ind_tbl = table;
    wanted.rx_hash_conf = {.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
                           .rx_hash_key_len = 40,
                           .rx_hash_key = key_,
                           .rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4};
    return wanted;
  }
  int refusal_of_scaling(ibv_rwq_ind_table* table, const std::function<void(ibv_qp_init_attr_ex&)>& change) {
    auto wanted = scaling_attributes(table);
    change(wanted);
    return refusal<ibv_qp>([&] { return ibv_create_qp_ex(context_, &wanted); }, ibv_destroy_qp);
  }

  // --- Flows: attributes, followed by specs of any kind.
  class Rule {
   public:
    Rule() : bytes_(sizeof(ibv_flow_attr)) {
      attributes().size = sizeof(ibv_flow_attr);
      attributes().port = 1;
    }
    ibv_flow_attr& attributes() { return *reinterpret_cast<ibv_flow_attr*>(bytes_.data()); }
    template <class Spec>
    Rule& add(std::uint32_t type, Spec spec, std::uint16_t size = sizeof(Spec)) {
      std::memcpy(&spec, &type, sizeof type);
      spec.size = size;
      const auto* at = reinterpret_cast<const std::byte*>(&spec);
      bytes_.insert(bytes_.end(), at, at + sizeof spec);
      ++attributes().num_of_specs;
      return *this;
    }

   private:
    std::vector<std::byte> bytes_;
  };
  int refusal_of_flow(ibv_qp* qp, Rule rule) {
    return refusal<ibv_flow>([&] { return ibv_create_flow(qp, &rule.attributes()); },
                             [](ibv_flow* flow) { return ibv_destroy_flow(flow); });
  }
  int refusal_of_flow(ibv_qp* qp, const std::function<void(ibv_flow_attr&)>& change) {
    Rule rule;
    change(rule.attributes());
    return refusal_of_flow(qp, rule);
  }

  FakePort port_;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_cq* cq_ = nullptr;
  std::uint8_t key_[40] = {1, 2, 3};
  std::uint8_t headers_[256] = {11, 12, 13};
  ibv_sge sge_{.addr = 0x1000, .length = 3500, .lkey = 7};
};

}  // namespace rnicsim
