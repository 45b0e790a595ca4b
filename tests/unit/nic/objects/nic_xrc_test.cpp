// SPDX-License-Identifier: Apache-2.0
// XRC on the device, through its published interface alone: commands, WQEs, CQEs, and hostile input.
#include "model/nic/engine/qp_context.h"
#include "model/nic/nic.h"
#include "model/nic/queues/command_unit.h"
#include "model/nic/queues/event_writer.h"
#include "tests/unit/nic/nic_pair.h"
#include "tests/unit/nic/objects/shared_ring.h"

namespace rnicsim::nic::test::xrc {
namespace {

using abi::CommandStatus;
using abi::SendOpcode;

constexpr std::uint32_t kSrqn = 6, kOtherSrqn = 7;
constexpr std::uint32_t kXrcd = 0x8001;

class XrcTest : public Pair {
 protected:
  void SetUp() override {
    build({});
    SharedRing::map_contexts(b());
    ring = std::make_unique<SharedRing>(b(), kSrqn);
    b().nic.blocks().events.written.subscribe([this](const EventTrace& event) {
      if (event.type != EventType::completion) events.push_back({event.type, event.number});
    });
  }
  static abi::CreateSrq of_domain(const SharedRing& ring, std::uint32_t xrcd = kXrcd) {
    auto create = ring.mailbox();
    create.context.flags = abi::Srqc::kXrc;
    create.context.xrcd = xrcd;
    create.context.cqn = kReceiveCqn;
    return create;
  }
  // Context of a new XRC receive QP: all other fields are zero.
  static void receiver(abi::Qpc& c) {
    c = {};
    c.transport = abi::Transport::xrc_recv;
    c.xrcd = kXrcd;
  }
  static void sender(abi::Qpc& c) {
    c.transport = abi::Transport::xrc_send;
    c.flags = abi::Qpc::kHasSend;
    c.receive_cqn = 12345;  // ignored: an XRC receive QP has no CQ
  }
  void connect_xrc() {
    ASSERT_EQ(b().command(of_domain(*ring)), CommandStatus::ok);
    ASSERT_EQ(a().destroy_qp(), CommandStatus::ok);
    ASSERT_EQ(b().destroy_qp(), CommandStatus::ok);
    ASSERT_EQ(a().create_qp_anew(sender), CommandStatus::ok) << syndrome(a());
    ASSERT_EQ(b().create_qp_anew(receiver), CommandStatus::ok) << syndrome(b());
    bring_up(a(), 2);
    bring_up(b(), 1);
  }
  // Brings up each end with the attributes of its transport.
  void bring_up(Node& node, std::uint8_t peer) {
    using namespace abi::qp_attr;
    const bool sends = &node == &a();
    abi::Qpc c;
    c.port = 1;
    c.access_flags = 0xe;
    c.path_mtu = 3;
    c.remote_qpn = kQpn;
    c.max_rd_atomic = c.max_dest_rd_atomic = 4;
    c.min_rnr_timer = 1;
    c.timeout = 8;
    c.retry_count = 3;
    std::ranges::copy(Node::gid_of(peer), c.path.remote_gid);
    c.path.remote_mac[5] = peer;
    ASSERT_EQ(node.modify(abi::QpState::init, kPkeyIndex | kPort | kAccessFlags, c), CommandStatus::ok);
    ASSERT_EQ(
        node.modify(abi::QpState::rtr,
                    kPath | kPathMtu | kRemoteQpn | kReceivePsn | (sends ? 0 : kMaxDestRdAtomic | kMinRnrTimer), c),
        CommandStatus::ok);
    ASSERT_EQ(
        node.modify(abi::QpState::rts, kTimeout | kSendPsn | (sends ? kRetryCount | kRnrRetry | kMaxRdAtomic : 0), c),
        CommandStatus::ok);
  }
  // A SEND; names_queue false: without the XRC segment.
  void send(std::uint32_t srqn, std::uint32_t length, bool names_queue = true) {
    std::vector<std::byte> wqe(64);
    abi::ControlSegment control;
    control.opcode = SendOpcode::send;
    control.wqe_index = posted_++;
    control.qpn_flags = kQpn << 8 | abi::ControlSegment::kSignaled;
    std::size_t at = sizeof control;
    abi::XrcSegment queue;
    queue.srqn = srqn;
    if (names_queue) std::memcpy(wqe.data() + std::exchange(at, at + sizeof queue), &queue, sizeof queue);
    abi::DataSegment data;
    data.byte_count = length;
    data.lkey = kKey;
    data.address = a().buffer;
    if (length != 0) std::memcpy(wqe.data() + std::exchange(at, at + sizeof data), &data, sizeof data);
    control.segments = static_cast<std::uint8_t>(at / 16);
    std::memcpy(wqe.data(), &control, sizeof control);
    a().post_raw(wqe, true);
  }
  static std::uint32_t syndrome(Node& node) { return node.output<abi::CommandResult>().syndrome; }
  static CommandStatus destroy(Node& node, abi::CommandOpcode opcode, std::uint32_t object) {
    abi::CommandHeader header;
    header.opcode = std::uint16_t(opcode);
    header.object = object;
    return node.command(header);
  }

  std::unique_ptr<SharedRing> ring;
  std::vector<std::pair<EventType, std::uint32_t>> events;
  std::uint16_t posted_ = 0;
};

TEST_F(XrcTest, AReceiveCompletesInTheQueuesCq) {
  connect_xrc();
  ring->post(b().buffer + 4096, 4096);
  a().fill(1);
  send(kSrqn, 3000);
  EXPECT_EQ(a().wait_status(kSendCqn), abi::CqeSyndrome::success);
  const auto cqe = b().wait(kReceiveCqn);
  ASSERT_TRUE(cqe);
  EXPECT_EQ(cqe->syndrome, abi::CqeSyndrome::success);
  EXPECT_EQ(cqe->flags, abi::Cqe::kXrc);
  EXPECT_EQ(cqe->qpn, kQpn);
  EXPECT_EQ(cqe->source_qpn[0] << 16 | cqe->source_qpn[1] << 8 | cqe->source_qpn[2], int(kSrqn));
  EXPECT_EQ(cqe->byte_count, 3000u);
  EXPECT_EQ(std::memcmp(a().host.at(a().buffer), b().host.at(b().buffer + 4096), 3000), 0);
  EXPECT_EQ(ring->query().flags, abi::Srqc::kXrc);
  EXPECT_EQ(ring->query().xrcd, kXrcd);
  EXPECT_EQ(ring->query().cqn, kReceiveCqn);
}

TEST_F(XrcTest, WhatIsMade) {
  auto create = of_domain(*ring);
  create.context.cqn = 33;
  EXPECT_EQ(b().command(create), CommandStatus::bad_parameter);
  EXPECT_EQ(syndrome(b()), std::uint32_t(CommandSyndrome::no_cq));
  ASSERT_EQ(b().command(of_domain(*ring)), CommandStatus::ok);
  ASSERT_EQ(b().destroy_qp(), CommandStatus::ok);
  EXPECT_EQ(destroy(b(), abi::CommandOpcode::destroy_cq, kReceiveCqn), CommandStatus::resource_busy);
  const auto refused = [&](const Node::Change& change) {
    EXPECT_NE(b().create_qp_anew(change), CommandStatus::ok);
    return syndrome(b());
  };
  const auto xrc_queues = std::uint32_t(QpSyndrome::xrc_queues);
  EXPECT_EQ(refused([](abi::Qpc& c) { receiver(c), c.flags = abi::Qpc::kHasSend; }), xrc_queues);
  EXPECT_EQ(refused([](abi::Qpc& c) { receiver(c), c.flags = abi::Qpc::kHasReceive; }), xrc_queues);
  EXPECT_EQ(refused([](abi::Qpc& c) { receiver(c), c.inline_receive = 1; }), xrc_queues);
  EXPECT_EQ(refused([](abi::Qpc& c) { sender(c), c.flags |= abi::Qpc::kHasReceive; }), xrc_queues);
  const auto names = [](abi::Qpc& c) { c.flags = abi::Qpc::kHasSend | abi::Qpc::kHasSrq, c.srqn = kSrqn; };
  EXPECT_EQ(refused(names), std::uint32_t(CommandSyndrome::no_srq)) << "of RC";
  EXPECT_EQ(b().create_qp_anew(receiver), CommandStatus::ok);
  EXPECT_EQ(destroy(b(), abi::CommandOpcode::destroy_srq, kSrqn), CommandStatus::ok) << "whoever receives for it";
  EXPECT_EQ(destroy(b(), abi::CommandOpcode::destroy_cq, kReceiveCqn), CommandStatus::ok);
}

TEST_F(XrcTest, ADeviceWithout) {
  for (const bool srq : {false, true}) {
    NicParams params;
    params.capabilities.srq = srq;
    params.capabilities.xrc = !srq;
    build(params);
    SharedRing::map_contexts(b());
    SharedRing other(b(), kSrqn);
    EXPECT_EQ(b().command(of_domain(other)), CommandStatus::not_supported);
    ASSERT_EQ(b().destroy_qp(), CommandStatus::ok);
    EXPECT_EQ(b().create_qp_anew(receiver), CommandStatus::not_supported);
    EXPECT_EQ(b().create_qp_anew(sender), CommandStatus::not_supported);
  }
}

TEST_F(XrcTest, AWqeThatNamesNoQueue) {
  connect_xrc();
  send(kSrqn, 0, false);
  EXPECT_EQ(a().wait_status(kSendCqn), abi::CqeSyndrome::local_qp_operation_error);
  EXPECT_TRUE(events.empty());
}

// A number of 32 bits is cut to 24 bits.
TEST_F(XrcTest, ANumberThatIsTooLong) {
  connect_xrc();
  ring->post(b().buffer, 64);
  send(0xff00'0000 | kSrqn, 8);
  EXPECT_EQ(a().wait_status(kSendCqn), abi::CqeSyndrome::success);
}

TEST_F(XrcTest, AQueueOfAnotherDomain) {
  connect_xrc();
  SharedRing other(b(), kOtherSrqn);
  ASSERT_EQ(b().command(of_domain(other, kXrcd + 1)), CommandStatus::ok);
  other.post(b().buffer, 64);
  send(kOtherSrqn, 8);
  EXPECT_EQ(a().wait_status(kSendCqn), abi::CqeSyndrome::remote_invalid_request_error);
  run(20);
  using Event = std::pair<EventType, std::uint32_t>;
  const std::vector<Event> wanted{{EventType::qp_request_error, kQpn}, {EventType::last_wqe_reached, kQpn}};
  EXPECT_EQ(events, wanted);
  EXPECT_EQ(other.query().taken, 0u);
  EXPECT_EQ(b().nic.counters().shared_receives.refused, 1u);
}

// A message is in flight to an SRQ that is destroyed; another SRQ gets the number before the message ends.
TEST_F(XrcTest, AQueueThatGoesUnderAMessage) {
  connect_xrc();
  ring->post(b().buffer, 512 << 10);
  send(kSrqn, 400 << 10);
  run(20);
  ASSERT_EQ(b().nic.counters().shared_receives.taken, 1u);
  ASSERT_EQ(destroy(b(), abi::CommandOpcode::destroy_srq, kSrqn), CommandStatus::ok);
  SharedRing next(b(), kSrqn);
  ASSERT_EQ(b().command(of_domain(next)), CommandStatus::ok);
  next.post(b().buffer, 64);
  EXPECT_EQ(a().wait_status(kSendCqn), abi::CqeSyndrome::success);
  run(20);
  EXPECT_FALSE(b().poll(kReceiveCqn));
  EXPECT_EQ(b().nic.counters().completion.orphans, 1u);
  send(kSrqn, 8);
  EXPECT_EQ(b().wait_status(kReceiveCqn), abi::CqeSyndrome::success);
}

// A receive held by a reset QP returns to its SRQ.
TEST_F(XrcTest, AResetUnderAMessage) {
  connect_xrc();
  ring->post(b().buffer, 512 << 10);
  send(kSrqn, 400 << 10);
  run(20);
  ASSERT_EQ(b().nic.counters().shared_receives.taken, 1u);
  ASSERT_EQ(b().modify(abi::QpState::reset, 0), CommandStatus::ok);
  run(20);
  EXPECT_EQ(b().nic.counters().shared_receives.given_back, 1u);
  EXPECT_EQ(ring->query().taken, 0u);
}

}  // namespace
}  // namespace rnicsim::nic::test::xrc
