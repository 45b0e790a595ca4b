// SPDX-License-Identifier: Apache-2.0
// Completion statuses and events of bad requests, bad WQEs, bad doorbells and bad commands.
#include <random>

#include "model/nic/queues/command_unit.h"
#include "model/roce/timers.h"
#include "tests/unit/nic/nic_pair.h"

namespace rnicsim::nic::test {
namespace {

using abi::CommandStatus;
using abi::CqeSyndrome;
using abi::EventType;
using abi::SendOpcode;

class Errors : public Pair {
 protected:
  std::optional<EventType> event_at_b() {
    while (const auto eqe = b().poll_eq(0))
      if (eqe->type != EventType::communication_established) return eqe->type;
    return std::nullopt;
  }
  abi::QpState state(Node& node) {
    abi::CommandHeader query;
    query.opcode = std::uint16_t(abi::CommandOpcode::query_qp);
    query.object = kQpn;
    EXPECT_EQ(node.command(query), CommandStatus::ok);
    return node.output<abi::QueryQp>().context.state;
  }
  void expect_error(const SendArguments& arguments, CqeSyndrome status) {
    a().post_send(arguments);
    EXPECT_EQ(a().wait_status(kSendCqn, 400_ms), status);
    EXPECT_EQ(state(a()), abi::QpState::error);
  }
};

TEST_F(Errors, AQpsRingsAndItsDoorbellRecordAreAligned) {
  ASSERT_EQ(b().destroy_qp(), CommandStatus::ok);
  const auto refused = [&](auto change) {
    EXPECT_EQ(b().create_qp_anew(change), CommandStatus::bad_parameter);
    EXPECT_EQ(b().output<abi::CommandResult>().syndrome, std::uint32_t(CommandSyndrome::bad_alignment));
  };
  refused([](abi::Qpc& c) { c.send_ring = c.send_ring + 32; });
  refused([](abi::Qpc& c) { c.receive_ring = c.receive_ring + 32; });
  refused([](abi::Qpc& c) { c.doorbell_record = c.doorbell_record + 4; });
  EXPECT_EQ(b().create_qp_anew([](abi::Qpc& c) { c.send_ring = c.send_ring + 64; }), CommandStatus::ok);
}

TEST_F(Errors, BadLocalKey) {
  connect();
  expect_error({.opcode = SendOpcode::write, .length = 8, .remote = at_b(), .lkey = kKey + 1},
               CqeSyndrome::local_protection_error);
  EXPECT_EQ(state(b()), abi::QpState::rts);
}

TEST_F(Errors, LocalErrorComesBeforeRemoteForWriteAndAfterForRead) {
  connect();
  expect_error({.opcode = SendOpcode::write, .length = 8, .remote = Remote{b().buffer, 1}, .lkey = 1},
               CqeSyndrome::local_protection_error);
  build({});
  connect();
  expect_error({.opcode = SendOpcode::read, .length = 8, .remote = Remote{b().buffer, 1}, .lkey = 1},
               CqeSyndrome::remote_access_error);
}

TEST_F(Errors, BadRemoteKeyAndRange) {
  for (const auto& remote : {Remote{0, kKey}, Remote{~0ull - 3, kKey}}) {
    connect();
    expect_error({.opcode = SendOpcode::write, .length = 8, .remote = remote}, CqeSyndrome::remote_access_error);
    EXPECT_EQ(state(b()), abi::QpState::error);
    EXPECT_EQ(event_at_b(), EventType::qp_access_error);
    EXPECT_FALSE(b().poll(kReceiveCqn));
    build({});
  }
}

TEST_F(Errors, RangeEndsExactlyAtTheRegion) {
  connect();
  a().post_send({.opcode = SendOpcode::write, .length = 8, .remote = at_b(Node::kBufferBytes - 8)});
  EXPECT_EQ(a().wait_status(kSendCqn), CqeSyndrome::success);
  expect_error({.opcode = SendOpcode::write, .length = 8, .remote = at_b(Node::kBufferBytes - 7)},
               CqeSyndrome::remote_access_error);
}

TEST_F(Errors, AccessFlagsOfTheQpDeny) {
  a().connect(b(), 3);
  b().connect(a(), 3, [](abi::Qpc& c) { c.access_flags = 0; });
  expect_error({.opcode = SendOpcode::read, .length = 8, .remote = at_b()}, CqeSyndrome::remote_access_error);
  EXPECT_EQ(event_at_b(), EventType::qp_access_error);
}

TEST_F(Errors, WriteWithImmediateToABadKeyTakesTheReceive) {
  connect();
  b().post_receive(b().buffer, 64);
  expect_error({.opcode = SendOpcode::write_with_imm, .length = 8, .remote = Remote{b().buffer, 1}},
               CqeSyndrome::remote_access_error);
  EXPECT_EQ(b().wait_status(kReceiveCqn), CqeSyndrome::local_access_error);
}

TEST_F(Errors, ReceiveTooSmall) {
  connect();
  b().post_receive(b().buffer, 63);
  b().post_receive(b().buffer, 64);
  expect_error({.opcode = SendOpcode::send, .length = 64}, CqeSyndrome::remote_invalid_request_error);
  EXPECT_EQ(b().wait_status(kReceiveCqn), CqeSyndrome::local_length_error);
  EXPECT_EQ(b().wait_status(kReceiveCqn), CqeSyndrome::flushed_error);
}

TEST_F(Errors, ReceiveTooSmallInALaterPacket) {
  connect(1);
  b().post_receive(b().buffer, 1000);
  expect_error({.opcode = SendOpcode::send, .length = 1001}, CqeSyndrome::remote_invalid_request_error);
  EXPECT_EQ(b().wait_status(kReceiveCqn), CqeSyndrome::local_length_error);
}

TEST_F(Errors, BadKeyInTheReceive) {
  connect();
  b().post_receive(b().buffer, 64, kKey + 1);
  expect_error({.opcode = SendOpcode::send, .length = 64}, CqeSyndrome::remote_operation_error);
  EXPECT_EQ(b().wait_status(kReceiveCqn), CqeSyndrome::local_protection_error);
}

TEST_F(Errors, NoReceivePosted) {
  connect();
  const auto start = now();
  expect_error({.opcode = SendOpcode::send, .length = 64}, CqeSyndrome::rnr_retry_exceeded);
  EXPECT_GE((now() - start).ps, (3 * 10_us).ps);
  EXPECT_EQ(a().nic.counters().engine.rnr_nak_retry_err, 3u);
}

TEST_F(Errors, ReceivePostedWhileTheSenderWaits) {
  connect(3, [](abi::Qpc& c) {
    c.rnr_retry = 7;
    c.min_rnr_timer = 12;
  });
  a().fill(3);
  a().post_send({.opcode = SendOpcode::send, .length = 3000});
  run(2000);
  EXPECT_FALSE(a().poll(kSendCqn));
  b().post_receive(b().buffer, 3000);
  EXPECT_EQ(a().wait_status(kSendCqn, 2_ms), CqeSyndrome::success);
  EXPECT_EQ(b().wait_status(kReceiveCqn), CqeSyndrome::success);
  EXPECT_EQ(std::memcmp(a().host.at(a().buffer), b().host.at(b().buffer), 3000), 0);
}

TEST_F(Errors, NobodyAnswers) {
  a().connect(b(), 3);
  const auto start = now();
  expect_error({.opcode = SendOpcode::write, .length = 64, .remote = at_b()}, CqeSyndrome::transport_retry_exceeded);
  EXPECT_GE((now() - start).ps, (4 * roce::ack_timeout(8)).ps);
  EXPECT_EQ(a().nic.counters().engine.local_ack_timeout_err, 4u);
}

TEST_F(Errors, ReadsNotAllowed) {
  a().connect(b(), 3);
  b().connect(a(), 3, [](abi::Qpc& c) { c.max_dest_rd_atomic = 0; });
  expect_error({.opcode = SendOpcode::read, .length = 8, .remote = at_b()}, CqeSyndrome::remote_invalid_request_error);
}

TEST_F(Errors, UnmappedMemoryIsAnErrorOnEitherSide) {
  connect();
  a().host.refuse_from = a().buffer;
  expect_error({.opcode = SendOpcode::write, .length = 8, .remote = at_b()}, CqeSyndrome::local_protection_error);
  build({});
  connect();
  b().host.refuse_from = b().buffer;
  expect_error({.opcode = SendOpcode::write, .length = 8, .remote = at_b()}, CqeSyndrome::remote_operation_error);
  EXPECT_EQ(event_at_b(), EventType::qp_fatal);
  build({});
  connect();
  b().host.refuse_from = b().buffer;
  expect_error({.opcode = SendOpcode::read, .length = 8, .remote = at_b()}, CqeSyndrome::remote_operation_error);
  EXPECT_EQ(event_at_b(), EventType::qp_fatal);
}

TEST_F(Errors, TheRestFlushesInOrder) {
  connect();
  for (int i = 0; i < 3; ++i) a().post_receive(a().buffer, 64);
  a().post_send({.opcode = SendOpcode::write, .length = 8, .remote = at_b()});
  a().post_send({.opcode = SendOpcode::write, .length = 8, .remote = at_b(), .lkey = 1, .flags = 0});
  for (int i = 0; i < 40; ++i)
    a().post_send({.opcode = SendOpcode::write, .length = 8, .remote = at_b(), .flags = 0, .blueflame = i % 3 == 0});
  EXPECT_EQ(a().wait_status(kSendCqn), CqeSyndrome::success);
  EXPECT_EQ(a().wait_status(kSendCqn), CqeSyndrome::local_protection_error);
  for (int i = 2; i < 42; ++i) {
    const auto cqe = a().wait(kSendCqn);
    ASSERT_TRUE(cqe) << i;
    EXPECT_EQ(cqe->syndrome, CqeSyndrome::flushed_error);
    EXPECT_EQ(cqe->wqe_counter, i);
  }
  for (int i = 0; i < 3; ++i) {
    const auto cqe = a().wait(kReceiveCqn);
    ASSERT_TRUE(cqe);
    EXPECT_EQ(cqe->syndrome, CqeSyndrome::flushed_error);
    EXPECT_EQ(cqe->wqe_counter, i);
  }
  a().post_send({.opcode = SendOpcode::send, .flags = 0});
  EXPECT_EQ(a().wait_status(kSendCqn), CqeSyndrome::flushed_error);
}

TEST_F(Errors, ModifyToErrorFlushesAndResetIsSilent) {
  connect();
  b().post_receive(b().buffer, 64);
  EXPECT_EQ(b().modify(abi::QpState::error, 0), CommandStatus::ok) << b().output<abi::CommandResult>().syndrome;
  EXPECT_EQ(b().wait_status(kReceiveCqn), CqeSyndrome::flushed_error);
  a().post_send({.opcode = SendOpcode::write, .length = 65536, .remote = at_b()});
  EXPECT_EQ(a().modify(abi::QpState::reset, 0), CommandStatus::ok);
  run(100);
  EXPECT_FALSE(a().poll(kSendCqn));
}

TEST_F(Errors, MalformedWqes) {
  connect();
  expect_error({.opcode = static_cast<SendOpcode>(0x77), .length = 8}, CqeSyndrome::local_qp_operation_error);
  build({});
  connect();
  expect_error({.opcode = SendOpcode::send, .length = 8, .index_error = 1}, CqeSyndrome::local_qp_operation_error);
  build({});
  connect();
  expect_error({.opcode = SendOpcode::write, .length = 0x7fffffff, .remote = at_b()}, CqeSyndrome::local_length_error);
}

TEST_F(Errors, OpcodesThatTheDeviceLacks) {
  NicParams params;
  auto& has = params.capabilities;
  has.invalidate = has.windows = has.srq = has.uc = has.ud = has.raw = has.relaxed_ordering = false;
  has.atomic_write = has.on_demand = has.fast_register = false;
  params.device_memory.size = {};
  has.max_multicast_groups = 0;
  for (const auto opcode :
       {SendOpcode::send_with_inv, SendOpcode::local_inv, SendOpcode::bind_window, SendOpcode::fast_register}) {
    build(params);
    connect();
    expect_error({.opcode = opcode, .length = opcode == SendOpcode::send_with_inv ? 8u : 0u, .immediate = kKey},
                 CqeSyndrome::local_qp_operation_error);
    EXPECT_EQ(state(b()), abi::QpState::rts);
  }
  const auto features = a().host.mmio_read(abi::reg::kFeatures + 4);
  EXPECT_EQ(features, abi::feature::kBlueFlame | abi::feature::kRc);
  abi::CommandHeader query;
  query.opcode = std::uint16_t(abi::CommandOpcode::query_device);
  EXPECT_EQ(a().command(query), CommandStatus::ok);
  EXPECT_EQ(a().output<abi::DeviceCapabilities>().features, features);
}

TEST_F(Errors, RandomWqesDoNoHarm) {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    build({});
    connect();
    for (int i = 0; i < 10; ++i) {
      std::vector<std::byte> wqe(64 * (1 + random() % 3));
      for (auto& byte : wqe) byte = static_cast<std::byte>(random() % 3 ? 0 : random());
      if (random() % 2) wqe[3] = static_cast<std::byte>(SendOpcode::write);
      wqe[7] = static_cast<std::byte>(random() % 16);
      a().post_raw(wqe, random() % 2);
    }
    run(50);
    // The peer's QP stays in RTS unless it got a request.
    EXPECT_TRUE(state(b()) == abi::QpState::rts || state(b()) == abi::QpState::error);
  }
}

TEST_F(Errors, RandomFramesDoNoHarm) {
  connect();
  std::mt19937 random(13);
  b().post_receive(b().buffer, 65536);
  std::vector<Frame> seen;
  drop() = [&](const Frame& frame) {
    seen.push_back(frame);
    return false;
  };
  a().post_send({.opcode = SendOpcode::send, .length = 3000});
  a().post_send({.opcode = SendOpcode::read, .length = 3000, .remote = at_b()});
  run(50);
  for (int i = 0; i < 20000; ++i) {
    const auto& frame = seen[random() % seen.size()];
    auto header = Payload::copy_of(frame.header_span());
    for (unsigned n = 1 + random() % 3; n > 0; --n)
      header.writable()[random() % header.size()] = static_cast<std::byte>(random());
    std::vector<std::byte> trailer(frame.trailer_span().begin(), frame.trailer_span().end());
    if (random() % 8 == 0) trailer.resize(random() % 9);
    b().nic.receive(Frame::of(std::move(header), frame.payload(), trailer));
  }
  run(50);
  EXPECT_EQ(state(b()), abi::QpState::rts);
  EXPECT_GT(b().nic.counters().rx.rx_icrc_encapsulated, 0u);
}

TEST_F(Errors, WrongUarPageIsRefused) {
  connect();
  const auto other = abi::kUarBase + (kUarPage + 1) * abi::kUarPageSize;
  a().write_be(other + abi::uar::kSendDoorbell, std::uint64_t{kQpn} << 32 | 1);
  a().write_be(other + abi::uar::kCqArm, std::uint64_t{kSendCqn << 8} << 32);
  a().write_be(abi::kUarBase + kUarPage * abi::kUarPageSize + 0x100, std::uint64_t{1});
  a().write_be(abi::kUarBase + kUarPage * abi::kUarPageSize, std::uint32_t{1});
  EXPECT_EQ(a().nic.counters().doorbell.doorbell_wrong_page, 2u);
  EXPECT_EQ(a().nic.counters().doorbell.doorbell_malformed, 2u);
  run(10);
  EXPECT_FALSE(a().poll(kSendCqn));
}

TEST_F(Errors, CqOverrunKillsTheQueueAndItsQps) {
  connect();
  a().consumes = false;
  for (int i = 0; i < 70; ++i) {
    a().post_send({.opcode = SendOpcode::nop});
    run(2);
  }
  run(50);
  const auto first = a().poll_eq(0);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->type, EventType::cq_error);
  EXPECT_EQ(a().poll_eq(0)->type, EventType::qp_fatal);
  EXPECT_EQ(state(a()), abi::QpState::error);
}

TEST_F(Errors, ACommandThatIsRefusedSaysWhy) {
  const auto why = [&](const auto& mailbox) {
    EXPECT_NE(a().command(mailbox), CommandStatus::ok);
    return static_cast<CommandSyndrome>(std::uint32_t(a().output<abi::CommandResult>().syndrome));
  };
  // memory was mapped for 64 entries
  EXPECT_EQ(why(a().region(64 << 8 | 1, a().buffer, 4096, 0)), CommandSyndrome::no_icm);
  EXPECT_EQ(why(a().region(kKey, a().buffer, 4096, 0)), CommandSyndrome::exists);
  abi::CreateCq cq;
  cq.header.opcode = std::uint16_t(abi::CommandOpcode::create_cq);
  cq.header.object = 9;
  cq.context.log_entries = 31;
  EXPECT_EQ(why(cq), CommandSyndrome::bad_size);
  cq.context.log_entries = 4;
  cq.context.ring = 8;
  EXPECT_EQ(why(cq), CommandSyndrome::bad_alignment);
  cq.header.object = 64;
  EXPECT_EQ(why(cq), CommandSyndrome::no_icm);
}

TEST_F(Errors, AQueryTellsHowFarTheSendsAre) {
  connect();
  for (std::uint32_t posted = 1; posted <= 3; ++posted) {
    a().post_send({.opcode = SendOpcode::write, .length = 8, .remote = at_b()});
    EXPECT_EQ(a().wait_status(kSendCqn), CqeSyndrome::success);
    abi::CommandHeader query;
    query.opcode = std::uint16_t(abi::CommandOpcode::query_qp);
    query.object = kQpn;
    ASSERT_EQ(a().command(query), CommandStatus::ok);
    const auto context = a().output<abi::QueryQp>().context;
    EXPECT_EQ(context.send_next, posted);
    EXPECT_EQ(context.send_consumer, posted);
  }
}

// Only the next response shows that a response was lost.
TEST_F(Errors, ALostResponseIsCounted) {
  connect();
  int packets = 0;
  drop() = [&](const Frame& frame) { return frame.size() > 1000 && ++packets == 2; };
  a().post_send({.opcode = SendOpcode::read, .length = 4096, .remote = at_b()});
  EXPECT_EQ(a().wait_status(kSendCqn), CqeSyndrome::success);
  const auto& counters = a().nic.counters().engine;
  EXPECT_EQ(counters.implied_nak_seq_err, 1u);
  EXPECT_EQ(counters.packet_seq_err, 0u);
  EXPECT_EQ(counters.local_ack_timeout_err, 0u);
  // A lost request causes a NAK.
  packets = 0;
  a().post_send({.opcode = SendOpcode::write, .length = 4096, .remote = at_b()});
  EXPECT_EQ(a().wait_status(kSendCqn), CqeSyndrome::success);
  EXPECT_EQ(a().nic.counters().engine.implied_nak_seq_err, 1u);
  EXPECT_EQ(a().nic.counters().engine.packet_seq_err, 1u);
}

// The bytes that a responder requests ahead are bounded: a lower bound makes a READ slower.
TEST_F(Errors, ReadAheadIsBounded) {
  const auto takes = [&](ByteCount ahead) {
    NicParams params;
    params.units.read_ahead = ahead;
    build(params);
    connect();
    run(10);
    const auto begun = now();
    a().post_send({.opcode = SendOpcode::read, .length = 65536, .remote = at_b()});
    EXPECT_EQ(a().wait_status(kSendCqn), CqeSyndrome::success);
    return now() - begun;
  };
  const auto far = takes({65536});
  EXPECT_GT(takes({2048}), 2 * far);
}

TEST_F(Errors, CorruptCommands) {
  std::mt19937 random(17);
  abi::CommandEntry entry;
  entry.owner = 1;
  entry.input_bytes = 8;
  EXPECT_EQ(a().run_entry(entry), CommandStatus::bad_input_length);
  entry.input_bytes = 16;
  entry.input = 0x10;
  EXPECT_EQ(a().run_entry(entry), CommandStatus::bad_mailbox);
  abi::CommandHeader header;
  header.opcode = 0x9999;
  EXPECT_EQ(a().command(header), CommandStatus::bad_opcode);
  header.opcode = std::uint16_t(abi::CommandOpcode::destroy_cq);
  header.object = kSendCqn;
  EXPECT_EQ(a().command(header), CommandStatus::resource_busy);
  header.object = 55;
  EXPECT_EQ(a().command(header), CommandStatus::bad_resource);
  for (int i = 0; i < 500; ++i) {
    std::array<std::byte, 288> noise;
    for (auto& byte : noise) byte = static_cast<std::byte>(random());
    noise[0] = static_cast<std::byte>(2);
    noise[1] = static_cast<std::byte>(0x10 * (random() % 4) + random() % 4);
    noise[4] = noise[5] = noise[6] = std::byte{0};
    noise[7] &= std::byte{0x1f};
    a().command(noise);
  }
}

}  // namespace
}  // namespace rnicsim::nic::test
