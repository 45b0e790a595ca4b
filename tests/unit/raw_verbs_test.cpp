// Raw packets, work queues, receive-side scaling, flows and counters: what the library refuses by itself, and what it
// asks of the device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/unit/fake_port.h"

namespace rnicsim {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

FakePort* raw_port = nullptr;

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

  // The last mailbox with that opcode.
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
  // In RTS; may be used by both APIs.
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
  // 0, and the object is destroyed; or errno.
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

  // --- Flows: the attributes, and specs of any kind behind them.
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

// Without headers, or of another transport: the device says so in a completion.
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
  wr.next = &wr;  // ends when it is full
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
  EXPECT_EQ(modify(IBV_WQ_ATTR_FLAGS, IBV_WQS_RESET, IBV_WQS_RESET, IBV_WQ_FLAGS_CVLAN_STRIPPING), EOPNOTSUPP);
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
  EXPECT_EQ(refusal([](auto& wanted) { wanted.rx_hash_conf.rx_hash_function = 2; }), EINVAL);
  EXPECT_EQ(refusal([](auto& wanted) { wanted.rx_hash_conf.rx_hash_key_len = 39; }), EINVAL);
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
  port_.refused[abi::CommandOpcode::create_rss] = ENOMEM;
  EXPECT_EQ(refusal([](auto&) {}), ENOMEM);
  EXPECT_EQ(ibv_destroy_rwq_ind_table(table), 0);
  EXPECT_EQ(ibv_destroy_wq(wq), 0);
}

TEST_F(RawVerbsTest, AFlowsConditionsAndActions) {
  ibv_qp* qp = make_qp();
  ibv_counters_init_attr none{};
  ibv_counters* counters = ibv_create_counters(context_, &none);
  ASSERT_NE(counters, nullptr);
  Rule rule;
  rule.attributes().priority = 0xfedc;
  rule.attributes().flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
  ibv_flow_spec_eth ethernet{};
  std::memset(&ethernet.val, 0xff, sizeof ethernet.val);
  ethernet.mask.dst_mac[5] = 0x0f;
  ethernet.mask.vlan_tag = 0xff0f;
  ibv_flow_spec_ipv4_ext ipv4{};
  ipv4.val.src_ip = ipv4.mask.src_ip = 0x0100000a;  // network order: 10.0.0.1
  ipv4.val.flags = ipv4.mask.flags = 2;
  ibv_flow_spec_ipv6 ipv6{};
  std::memset(&ipv6.val, 0xff, sizeof ipv6.val);
  std::memset(&ipv6.mask, 0xff, sizeof ipv6.mask);
  ibv_flow_spec_tcp_udp udp{};
  udp.val.dst_port = udp.mask.dst_port = 0x3412;
  ibv_flow_spec_action_tag tag{};
  tag.tag_id = 0xabcdef;
  ibv_flow_spec_counter_action count{};
  count.counters = counters;
  rule.add(IBV_FLOW_SPEC_ETH, ethernet)
      .add(IBV_FLOW_SPEC_IPV4_EXT, ipv4)
      .add(IBV_FLOW_SPEC_IPV6 | IBV_FLOW_SPEC_INNER, ipv6)
      .add(IBV_FLOW_SPEC_UDP | IBV_FLOW_SPEC_INNER, udp)
      .add(IBV_FLOW_SPEC_ACTION_TAG, tag)
      .add(IBV_FLOW_SPEC_ACTION_DROP, ibv_flow_spec_action_drop{})
      .add(IBV_FLOW_SPEC_ACTION_COUNT, count);
  ibv_flow* flow = ibv_create_flow(qp, &rule.attributes());
  ASSERT_NE(flow, nullptr);
  EXPECT_EQ(flow->context, context_);
  const auto made = *asked<abi::CreateFlow>(abi::CommandOpcode::create_flow);
  EXPECT_EQ(made.qpn, qp->qp_num);
  EXPECT_EQ(made.priority, 0xfedc);
  EXPECT_EQ(made.kind, abi::FlowKind::normal);
  EXPECT_EQ(made.flags, 0xf);
  EXPECT_EQ(made.tag, 0xabcdefu);
  ASSERT_EQ(made.conditions_count, 4);
  const auto& [first, second, third, fourth] = std::tie(made.conditions[0], made.conditions[1], made.conditions[2],
                                                        made.conditions[3]);
  EXPECT_EQ(first.header, abi::FlowHeader::ethernet);
  EXPECT_EQ(first.inner, 0);
  EXPECT_EQ(first.value[5], 0x0f) << "what the mask leaves of it";
  EXPECT_THAT(std::vector(first.value + 14, first.value + 16), ElementsAre(0x0f, 0xff));
  EXPECT_EQ(first.value[0], 0);
  EXPECT_EQ(second.header, abi::FlowHeader::ipv4);
  EXPECT_THAT(std::vector(second.value, second.value + 12), ElementsAre(10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2));
  EXPECT_EQ(third.header, abi::FlowHeader::ipv6);
  EXPECT_EQ(third.inner, 1);
  EXPECT_THAT(std::vector(third.mask, third.mask + 39), Each(0xff));
  EXPECT_EQ(third.mask[39], 0) << "padding";
  EXPECT_EQ(fourth.header, abi::FlowHeader::udp);
  EXPECT_THAT(std::vector(fourth.value, fourth.value + 4), ElementsAre(0x12, 0x34, 0, 0));
  EXPECT_EQ(ibv_destroy_counters(counters), 0) << "the kernel would refuse that";
  const auto handle = flow->handle;
  flow->handle = 999;
  EXPECT_EQ(ibv_destroy_flow(flow), ENOENT);
  flow->handle = handle;
  EXPECT_EQ(ibv_destroy_flow(flow), 0);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(RawVerbsTest, EverySpecHasItsHeader) {
  ibv_qp* qp = make_qp();
  const auto header_of = [&](std::uint32_t type, auto spec) {
    EXPECT_EQ(refusal_of_flow(qp, Rule().add(type, spec)), 0) << type;
    return asked<abi::CreateFlow>(abi::CommandOpcode::create_flow)->conditions[0].header;
  };
  EXPECT_EQ(header_of(IBV_FLOW_SPEC_IPV4, ibv_flow_spec_ipv4{}), abi::FlowHeader::ipv4);
  EXPECT_EQ(header_of(IBV_FLOW_SPEC_ESP, ibv_flow_spec_esp{}), abi::FlowHeader::esp);
  EXPECT_EQ(header_of(IBV_FLOW_SPEC_TCP, ibv_flow_spec_tcp_udp{}), abi::FlowHeader::tcp);
  EXPECT_EQ(header_of(IBV_FLOW_SPEC_VXLAN_TUNNEL, ibv_flow_spec_tunnel{}), abi::FlowHeader::vxlan);
  EXPECT_EQ(header_of(IBV_FLOW_SPEC_GRE, ibv_flow_spec_gre{}), abi::FlowHeader::gre);
  EXPECT_EQ(header_of(IBV_FLOW_SPEC_MPLS, ibv_flow_spec_mpls{}), abi::FlowHeader::mpls);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(RawVerbsTest, FlowsAreRefused) {
  ibv_qp* qp = make_qp();
  ibv_qp* connected = make_qp(IBV_QPT_RC);
  ibv_qp* datagrams = make_qp(IBV_QPT_UD);
  EXPECT_EQ(refusal_of_flow(qp, Rule()), 0);
  EXPECT_EQ(refusal_of_flow(connected, Rule()), EINVAL);
  EXPECT_EQ(refusal_of_flow(datagrams, Rule()), EOPNOTSUPP);
  EXPECT_EQ(refusal_of_flow(qp, [](auto& wanted) { wanted.comp_mask = 1; }), EINVAL);
  EXPECT_EQ(refusal_of_flow(qp, [](auto& wanted) { wanted.flags = 1; }), EINVAL);
  EXPECT_EQ(refusal_of_flow(qp, [](auto& wanted) { wanted.flags = IBV_FLOW_ATTR_FLAGS_EGRESS; }), EOPNOTSUPP);
  EXPECT_EQ(refusal_of_flow(qp, [](auto& wanted) { wanted.flags = 8; }), EINVAL);
  EXPECT_EQ(refusal_of_flow(qp, [](auto& wanted) { wanted.port = 0; }), EINVAL);
  EXPECT_EQ(refusal_of_flow(qp, [](auto& wanted) { wanted.port = 2; }), EINVAL);
  const auto number = qp->handle;
  qp->handle = 999;
  EXPECT_EQ(refusal_of_flow(qp, Rule()), ENOENT);
  qp->handle = number;
  for (const auto type : {IBV_FLOW_ATTR_ALL_DEFAULT, IBV_FLOW_ATTR_MC_DEFAULT, IBV_FLOW_ATTR_SNIFFER}) {
    Rule rule;
    rule.attributes().type = type;
    EXPECT_EQ(refusal_of_flow(qp, rule), 0);
    EXPECT_EQ(asked<abi::CreateFlow>(abi::CommandOpcode::create_flow)->kind, abi::FlowKind(type));
    rule.add(IBV_FLOW_SPEC_ACTION_TAG, ibv_flow_spec_action_tag{});
    EXPECT_EQ(refusal_of_flow(qp, rule), 0);
    rule.add(IBV_FLOW_SPEC_ETH, ibv_flow_spec_eth{});
    EXPECT_EQ(refusal_of_flow(qp, rule), EINVAL);
  }
  Rule many;
  for (int i = 0; i < 16; ++i) many.add(IBV_FLOW_SPEC_MPLS, ibv_flow_spec_mpls{});
  EXPECT_EQ(refusal_of_flow(qp, many), 0);
  many.add(IBV_FLOW_SPEC_MPLS, ibv_flow_spec_mpls{});
  EXPECT_EQ(refusal_of_flow(qp, many), EINVAL);

  EXPECT_EQ(refusal_of_flow(qp, Rule().add(IBV_FLOW_SPEC_ETH, ibv_flow_spec_eth{}, 8)), EINVAL) << "too short";
  EXPECT_EQ(refusal_of_flow(qp, Rule().add(IBV_FLOW_SPEC_ETH, ibv_flow_spec_eth{}, 0)), EINVAL);
  EXPECT_EQ(refusal_of_flow(qp, Rule().add(IBV_FLOW_SPEC_ETH, ibv_flow_spec_eth{}, 0xffff)), EINVAL);
  EXPECT_EQ(refusal_of_flow(qp, Rule().add(0x99, ibv_flow_spec_eth{})), EINVAL) << "unknown";
  using Tag = ibv_flow_spec_action_tag;
  EXPECT_EQ(refusal_of_flow(qp, Rule().add(IBV_FLOW_SPEC_ACTION_TAG | IBV_FLOW_SPEC_INNER, Tag{})), EINVAL);
  EXPECT_EQ(refusal_of_flow(qp, Rule().add(IBV_FLOW_SPEC_ACTION_TAG, Tag{}).add(IBV_FLOW_SPEC_ACTION_TAG, Tag{})),
            EINVAL);
  EXPECT_EQ(refusal_of_flow(qp, Rule().add(IBV_FLOW_SPEC_ACTION_HANDLE, ibv_flow_spec_action_handle{})), EOPNOTSUPP);
  EXPECT_EQ(refusal_of_flow(qp, Rule().add(IBV_FLOW_SPEC_ACTION_COUNT, ibv_flow_spec_counter_action{})), EINVAL);
  port_.refused[abi::CommandOpcode::create_flow] = EPERM;
  EXPECT_EQ(refusal_of_flow(qp, Rule()), EPERM);
  for (ibv_qp* made : {qp, connected, datagrams}) EXPECT_EQ(ibv_destroy_qp(made), 0);
}

TEST_F(RawVerbsTest, CountersAreReadWhereTheyWereAttached) {
  ibv_qp* qp = make_qp();
  ibv_counters_init_attr wanted{.comp_mask = 1};
  EXPECT_EQ(ibv_create_counters(context_, &wanted), nullptr);
  EXPECT_EQ(errno, EINVAL);
  wanted.comp_mask = 0;
  ibv_counters* counters = ibv_create_counters(context_, &wanted);
  ASSERT_NE(counters, nullptr);
  const auto attach = [&](int what, std::uint32_t index, std::uint32_t mask = 0, ibv_flow* flow = nullptr) {
    ibv_counter_attach_attr to{.counter_desc = ibv_counter_description(what), .index = index, .comp_mask = mask};
    return ibv_attach_counters_point_flow(counters, &to, flow);
  };
  EXPECT_EQ(attach(IBV_COUNTER_PACKETS, 1), 0);
  EXPECT_EQ(attach(IBV_COUNTER_BYTES, 0), 0);
  EXPECT_EQ(attach(IBV_COUNTER_BYTES, 2), 0);
  EXPECT_EQ(attach(IBV_COUNTER_PACKETS, 2), 0) << "one index may be several's";
  EXPECT_EQ(attach(IBV_COUNTER_PACKETS, 1, 1), EINVAL);
  EXPECT_EQ(attach(3, 1), EOPNOTSUPP);

  std::uint64_t values[4] = {9, 9, 9, 9};
  EXPECT_EQ(ibv_read_counters(counters, values, 2, 0), EINVAL) << "index 2 is asked for";
  EXPECT_EQ(ibv_read_counters(counters, values, 4, 2), EINVAL);
  EXPECT_EQ(ibv_read_counters(counters, values, 4, IBV_READ_COUNTERS_ATTR_PREFER_CACHED), 0);
  EXPECT_THAT(values, ElementsAre(300, 3, 303, 0));

  ibv_flow_spec_counter_action count{};
  count.counters = counters;
  Rule rule;
  rule.add(IBV_FLOW_SPEC_ACTION_COUNT, count);
  ibv_flow* flow = ibv_create_flow(qp, &rule.attributes());
  ASSERT_NE(flow, nullptr);
  EXPECT_EQ(attach(IBV_COUNTER_PACKETS, 1), EBUSY);
  EXPECT_EQ(attach(IBV_COUNTER_PACKETS, 1, 0, flow), EOPNOTSUPP);
  port_.refused[abi::CommandOpcode::destroy_counter] = EBUSY;
  EXPECT_EQ(ibv_destroy_counters(counters), EBUSY);
  port_.refused.clear();
  EXPECT_EQ(ibv_destroy_flow(flow), 0);
  EXPECT_EQ(attach(IBV_COUNTER_PACKETS, 3), 0);

  ibv_context* other = open();
  counters->context = other;
  EXPECT_EQ(refusal_of_flow(qp, rule), EINVAL);
  counters->context = context_;
  EXPECT_EQ(ibv_close_device(other), 0);
  EXPECT_EQ(ibv_destroy_counters(counters), 0);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

// What a program leaves goes before what it stands on.
TEST_F(RawVerbsTest, AClosedContextTakesAllWithIt) {
  ibv_context* context = open();
  std::swap(context, context_);
  ibv_pd* pd = ibv_alloc_pd(context_);
  ibv_cq* cq = ibv_create_cq(context_, 4, nullptr, nullptr, 0);
  std::swap(pd, pd_);
  std::swap(cq, cq_);
  auto scaling = scaling_attributes(make_table({make_wq()}));
  ibv_qp* qp = ibv_create_qp_ex(context_, &scaling);
  ASSERT_NE(qp, nullptr);
  Rule rule;
  ASSERT_NE(ibv_create_flow(qp, &rule.attributes()), nullptr);
  ibv_counters_init_attr none{};
  ASSERT_NE(ibv_create_counters(context_, &none), nullptr);
  port_.commands.clear();
  EXPECT_EQ(ibv_close_device(context_), 0);
  std::vector<abi::CommandOpcode> order;
  for (const auto& input : port_.commands)
    order.push_back(abi::CommandOpcode(std::uint16_t(provider::decode<abi::CommandHeader>(input).opcode)));
  using enum abi::CommandOpcode;
  EXPECT_THAT(order, ElementsAre(destroy_flow, destroy_counter, destroy_rss, destroy_qp, destroy_cq));
  context_ = context;
  pd_ = pd;
  cq_ = cq;
}

class WithoutRawTest : public RawVerbsTest {
 protected:
  WithoutRawTest() : RawVerbsTest(abi::feature::kRc) {}
};

TEST_F(WithoutRawTest, AllIsRefused) {
  ibv_qp* connected = make_qp(IBV_QPT_RC);
  EXPECT_EQ(refusal_of_qp([](auto&) {}), EOPNOTSUPP);
  EXPECT_EQ(refusal_of_wq([](auto&) {}), EOPNOTSUPP);
  EXPECT_EQ(make_table({nullptr}), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(refusal_of_flow(connected, Rule()), EOPNOTSUPP);
  ibv_counters_init_attr none{};
  errno = 0;
  EXPECT_EQ(ibv_create_counters(context_, &none), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  for (const auto field : {IBV_WC_EX_WITH_FLOW_TAG, IBV_WC_EX_WITH_CVLAN}) {
    ibv_cq_init_attr_ex wanted{.cqe = 8, .wc_flags = std::uint64_t(field)};
    errno = 0;
    EXPECT_EQ(ibv_create_cq_ex(context_, &wanted), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
  }
  EXPECT_EQ(refusal_of_qp([](auto& wanted) { ask_flags(wanted, IBV_QP_CREATE_SCATTER_FCS); }, IBV_QPT_RC), EOPNOTSUPP);
  auto wr = segmented();
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(move(connected, IBV_QPS_ERR), 0);
  EXPECT_EQ(ibv_post_send(connected, &wr, &bad), EINVAL);
  ibv_device_attr_ex device;
  ASSERT_EQ(ibv_query_device_ex(context_, nullptr, &device), 0);
  EXPECT_EQ(device.rss_caps.supported_qpts, 0u);
  EXPECT_EQ(device.max_wq_type_rq, 0u);
  EXPECT_EQ(device.raw_packet_caps, 0u);
  EXPECT_EQ(device.tso_caps.supported_qpts, 0u);
  EXPECT_EQ(device.tso_caps.max_tso, 0u);
  EXPECT_EQ(device.device_cap_flags_ex & IBV_DEVICE_RAW_SCATTER_FCS, 0u);
  EXPECT_FALSE(device.orig_attr.device_cap_flags & (IBV_DEVICE_RAW_IP_CSUM | IBV_DEVICE_MANAGED_FLOW_STEERING));
  EXPECT_EQ(ibv_destroy_qp(connected), 0);
}

}  // namespace

DevicePort* device_port(std::uint32_t device) { return device == 0 ? raw_port : nullptr; }

}  // namespace rnicsim
