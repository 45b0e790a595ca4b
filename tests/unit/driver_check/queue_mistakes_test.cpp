// SPDX-License-Identifier: Apache-2.0
// Mistakes at doorbells, rings and records: each is reported at its first wrong access.
#include "tests/unit/driver_check/checked_pair.h"

namespace rnicsim::driver_check {
namespace {

using abi::CommandOpcode;
using abi::CommandStatus;
using nic::test::kKey;
using nic::test::kLogCqes;
using nic::test::kPasid;
using nic::test::kPd;
using nic::test::kQpn;
using nic::test::kReceiveCqn;
using nic::test::kSendCqn;
using nic::test::kUarPage;

constexpr std::uint32_t kSrqn = 3;
constexpr std::uint32_t kSrqQpn = 0x21;

class QueueMistakes : public CheckedPair {
 protected:
  void SetUp() override { begin({}); }
  void begin(const CheckParams& params) {
    build(params);
    bring_up();
  }
  void ring(std::uint16_t producer, std::uint32_t qpn = kQpn) {
    a().write_be(page() + abi::uar::kSendDoorbell, std::uint64_t{qpn} << 32 | producer);
  }
  std::vector<std::byte> nop(std::uint16_t index, std::uint32_t qpn = kQpn) {
    abi::ControlSegment control;
    control.opcode = abi::SendOpcode::nop;
    control.wqe_index = index;
    control.segments = 1;
    control.qpn_flags = qpn << 8 | abi::ControlSegment::kSignaled;
    std::vector<std::byte> wqe(64);
    std::memcpy(wqe.data(), &control, sizeof control);
    return wqe;
  }
  void post(const std::vector<std::byte>& wqe) { a().post_raw(wqe, false); }
  void lap() {
    for (std::uint16_t i = 0; i < 64; ++i) {
      post(nop(a().send_producer()));
      run(3);
      while (a().poll(kSendCqn)) {}
    }
  }
  void arm(std::uint32_t cqn, std::uint32_t consumer) {
    a().write_be(page() + abi::uar::kCqArm, std::uint64_t{cqn << 8} << 32 | consumer);
  }
  void set_consumer(std::uint32_t cqn, std::uint32_t consumer) {
    abi::CqDoorbellRecord record;
    record.consumer = consumer;
    a().host.put(a().cq_record(cqn), record);
  }
  // Fills half of the CQ, so that the device reads its record.
  void half_fill() {
    for (int i = 0; i < 40; ++i) {
      post(nop(a().send_producer()));
      run(3);
    }
  }
};

TEST_F(QueueMistakes, DoorbellBeforeAFirstWqe) {
  ring(1);
  expect_finding(FindingKind::stale_wqe, {"queue pair 17, WQE 0", "block in memory is empty"});
}

TEST_F(QueueMistakes, DoorbellBeforeTheWqeOfALaterLap) {
  lap();
  expect_nothing();
  ring(65);
  expect_finding(FindingKind::stale_wqe, {"queue pair 17, WQE 64", "still has the older WQE 0"});
}

TEST_F(QueueMistakes, WqeOfAnotherPlace) {
  post(nop(7));
  expect_finding(FindingKind::unsound_wqe, {"WQE 0", "the WQE in memory has index 7 and names queue pair 17"});
}

TEST_F(QueueMistakes, WqeOfAnotherByteOrder) {
  lap();
  post(nop(64 << 8));
  expect_finding(FindingKind::wrong_endianness, {"wqe_index is 0x4000", "the index is 64"});
}

TEST_F(QueueMistakes, WqeWithoutLength) {
  auto wqe = nop(0);
  wqe[7] = std::byte{0};
  post(wqe);
  expect_finding(FindingKind::unsound_wqe, {"invalid length of 0 bytes"});
}

TEST_F(QueueMistakes, WqeOfNoOpcode) {
  auto wqe = nop(0);
  wqe[3] = std::byte{0x77};
  post(wqe);
  expect_finding(FindingKind::unsound_wqe, {"unknown opcode"});
}

TEST_F(QueueMistakes, ReservedBytesLeftFromALapBefore) {
  lap();
  auto wqe = nop(64);
  wqe[1] = std::byte{0xaa};
  post(wqe);
  expect_finding(FindingKind::reserved_bytes, {"WQE 64 (nop)", "0x01 of ControlSegment is 0xaa", "older WQE"});
}

TEST_F(QueueMistakes, ReservedBytesOfTheRemoteAddress) {
  write();
  run(10);
  expect_nothing();
  *a().host.at(a().send_ring + 64 + 16 + 15) = std::byte{1};
  abi::ControlSegment control;
  control.opcode = abi::SendOpcode::write;
  control.wqe_index = 1;
  control.segments = 2;
  control.qpn_flags = kQpn << 8;
  a().host.put(a().send_ring + 64, control);
  ring(2);
  expect_finding(FindingKind::reserved_bytes, {"WQE 1 (write)", "0x0f of RemoteAddressSegment"});
}

TEST_F(QueueMistakes, DoorbellPastTheRing) {
  ring(65);
  expect_finding(FindingKind::past_ring, {"producer 65 after 0 announces 65 blocks", "has 64"});
}

TEST_F(QueueMistakes, ProducerOfAnotherByteOrder) {
  std::memcpy(a().host.at(a().send_ring), nop(0).data(), 64);
  a().write_be(page() + abi::uar::kSendDoorbell, std::uint64_t{kQpn} << 32 | 1u << 24);
  expect_finding(FindingKind::wrong_endianness, {"queue pair 17: producer", "in big-endian order the value is 1"});
}

TEST_F(QueueMistakes, QueueOfAnotherByteOrder) {
  std::array<std::byte, 8> bytes{};
  std::ranges::copy(little(kQpn), bytes.begin());
  a().host.mmio(page() + abi::uar::kSendDoorbell, bytes);
  expect_finding(FindingKind::wrong_endianness, {"is no queue pair", "in big-endian order the number is 17"});
}

TEST_F(QueueMistakes, DoorbellOfNoQueuePair) {
  ring(1, 0x55);
  expect_finding(FindingKind::unknown_object, {"there is no queue pair 85"});
}

TEST_F(QueueMistakes, DoorbellOnAForeignPage) {
  a().write_be(page() + abi::kUarPageSize + abi::uar::kSendDoorbell, std::uint64_t{kQpn} << 32 | 1);
  expect_finding(FindingKind::wrong_page, {"queue pair 17", "UAR page 4", "the object belongs to page 3"});
}

TEST_F(QueueMistakes, DoorbellInReset) {
  EXPECT_EQ(a().modify(abi::QpState::reset, 0), CommandStatus::ok);
  ring(1);
  run(5);
  expect_finding(FindingKind::wrong_state, {"queue pair 17", "RESET"});
}

TEST_F(QueueMistakes, ConsumerPastTheProducer) {
  set_consumer(kSendCqn, 100);
  a().consumes = false;
  half_fill();
  expect_finding(FindingKind::consumer_past_producer, {"completion queue 1", "consumer 100 is", "beyond the"});
}

TEST_F(QueueMistakes, ConsumerOfAnotherByteOrder) {
  a().consumes = false;
  a().host.put(a().cq_record(kSendCqn), little(std::uint64_t{5}));
  half_fill();
  expect_finding(FindingKind::wrong_endianness, {"completion queue 1: consumer", "in big-endian order the value is 5"});
}

TEST_F(QueueMistakes, ArmPastTheProducer) {
  arm(kSendCqn, 9);
  expect_finding(FindingKind::arm_past_producer, {"completion queue 1", "consumer 9 is 9 beyond the 0 entries"});
}

TEST_F(QueueMistakes, ArmOfAnotherByteOrder) {
  arm(kSendCqn, 3u << 24);
  expect_finding(FindingKind::wrong_endianness, {"arm of completion queue 1", "in big-endian order the value is 3"});
}

TEST_F(QueueMistakes, EventConsumerPastTheProducer) {
  a().write_be(abi::kUarBase + abi::uar::kEqDoorbell, std::uint64_t{1} << 32 | 4);
  expect_finding(FindingKind::consumer_past_producer, {"event queue 1", "consumer 4 is 4 beyond the 0 events"});
}

TEST_F(QueueMistakes, PositionOfTheOldRingAfterAResize) {
  lap();
  abi::ResizeCq resize;
  resize.header.opcode = std::uint16_t(CommandOpcode::resize_cq);
  resize.header.object = kSendCqn;
  resize.ring = a().host.allocate(64 << 7);
  resize.log_entries = 7;
  for (int i = 0; i < 128; ++i) a().host.at(resize.ring + 64 * i)[63] = std::byte{abi::Cqe::kInitialOwner};
  EXPECT_EQ(a().command(resize), CommandStatus::ok);
  arm(kSendCqn, 64);
  expect_nothing();
  arm(kSendCqn, 0);
  expect_finding(FindingKind::old_ring_position, {"consumer 0 is before 64", "resize"});
}

TEST_F(QueueMistakes, OverrunWithARecordThatNeverMoves) {
  a().consumes = false;
  for (int i = 0; i < 70; ++i) {
    post(nop(a().send_producer()));
    run(3);
    a().poll(kSendCqn);
  }
  expect_finding(FindingKind::record_not_updated, {"completion queue 1 overruns with consumer 0", "never changed"});
}

TEST_F(QueueMistakes, OverrunWithEntriesOfADestroyedQueuePair) {
  half_fill();
  EXPECT_EQ(a().destroy_qp(), CommandStatus::ok);
  EXPECT_EQ(a().create_qp_anew([](abi::Qpc&) {}), CommandStatus::ok);
  a().restart();
  a().connect(b(), 3);
  half_fill();
  expect_finding(FindingKind::record_not_updated,
                 {"completion queue 1 overruns", "40 of the", "destroyed queue pairs, for example 17"});
}

TEST_F(QueueMistakes, ArmForACqeWithoutItsOwnerBit) {
  begin({.owner_delay = 100_us});
  post(nop(0));
  run(5);
  EXPECT_EQ(a().host.get<abi::Cqe>(a().cq_ring(kSendCqn)).qpn, kQpn);  // the CQE's body has arrived
  EXPECT_FALSE(a().poll(kSendCqn));
  arm(kSendCqn, 1);
  expect_finding(FindingKind::body_before_owner,
                 {"arm of completion queue 1: consumer 1, but the owner bit of entry 0"});
}

// With owner_delay an entry's owner bit lands late: a driver that looks at another field takes the entry too early.
TEST_F(QueueMistakes, CqeTakenBeforeItsOwnerBit) {
  begin({.owner_delay = 1_ms});
  half_fill();
  expect_nothing();
  run(2000);
  set_consumer(kSendCqn, 40);
  // BlueFlame, since a fetch of WQEs would push the owner bits. The read of the record does so, too, after the first 8.
  for (const int wqes : {8, 4}) {
    for (int i = 0; i < wqes; ++i) a().post_raw(nop(a().send_producer()), true);
    run(4);
  }
  set_consumer(kSendCqn, 52);  // the driver has seen the bodies of the last four
  for (int i = 0; i < 40; ++i) {
    a().post_raw(nop(a().send_producer()), true);
    run(3);
  }
  expect_finding(FindingKind::body_before_owner, {"completion queue 1", "is not valid yet"});
}

TEST_F(QueueMistakes, BodyReadBeforeTheOwnerBit) {
  begin({.poison = true});
  post(nop(0));
  bool poisoned = false;
  for (int i = 0; i < 1000 && !poisoned; ++i) {
    run(0.01);
    poisoned = *a().host.at(a().cq_ring(kSendCqn)) == std::byte{CheckParams::kPoison};
  }
  ASSERT_TRUE(poisoned);
  const auto qpn = a().host.get<abi::Cqe>(a().cq_ring(kSendCqn)).qpn;  // read before the owner bit
  run(5);
  const auto cqe = a().poll(kSendCqn);
  ASSERT_TRUE(cqe);
  EXPECT_EQ(cqe->qpn, kQpn);
  ring(2, qpn & 0xffffff);
  expect_finding(FindingKind::body_before_owner, {"0xdbdbdb is no queue pair", "pattern"});
}

TEST_F(QueueMistakes, ReceivesPastTheRing) {
  abi::QpDoorbellRecord record;
  record.receive_producer = 40;
  a().host.put(a().record(), record);
  b().post_send({.opcode = abi::SendOpcode::send, .length = 8, .blueflame = false});
  run(20);
  expect_finding(FindingKind::past_ring,
                 {"queue pair 17", "receive_producer 40 announces 40", "the ring has at most 32"});
}

TEST_F(QueueMistakes, ReceivesOfAnotherByteOrder) {
  a().host.put(a().record(), little(std::uint64_t{2}));
  b().post_send({.opcode = abi::SendOpcode::send, .length = 8, .blueflame = false});
  run(20);
  expect_finding(FindingKind::wrong_endianness,
                 {"queue pair 17: receive_producer", "in big-endian order the value is 2"});
}

// --- Shared receive queues.

class SharedMistakes : public QueueMistakes {
 protected:
  void SetUp() override {
    begin({});
    abi::MapIcm map;
    map.header.opcode = std::uint16_t(CommandOpcode::map_icm);
    map.table = static_cast<std::uint32_t>(abi::IcmTable::srqc);
    map.count = 64;
    map.memory = a().host.allocate(4096);
    ASSERT_EQ(a().command(map), CommandStatus::ok);
    ring_ = a().host.allocate(8 * 64);
    record_ = a().host.allocate(64);
    abi::CreateSrq srq;
    srq.header.opcode = std::uint16_t(CommandOpcode::create_srq);
    srq.header.object = kSrqn;
    srq.context.log_entries = 3;
    srq.context.log_stride = 6;
    srq.context.pasid = kPasid;
    srq.context.pd = kPd;
    srq.context.ring = ring_;
    srq.context.doorbell_record = record_;
    ASSERT_EQ(a().command(srq), CommandStatus::ok);
    ASSERT_EQ(a().destroy_qp(), CommandStatus::ok);
    ASSERT_EQ(a().create_qp_anew([](abi::Qpc& context) {
      context.flags = abi::Qpc::kHasSend | abi::Qpc::kHasSrq;
      context.srqn = kSrqn;
    }),
              CommandStatus::ok);
    a().connect(b(), 3);
  }
  void put(std::uint16_t index, std::uint16_t next) {
    struct {
      abi::SrqNextSegment next;
      abi::DataSegment data[2];
    } entry;
    entry.next.next = next;
    entry.data[0].byte_count = 64;
    entry.data[0].lkey = kKey;
    entry.data[0].address = a().buffer;
    entry.data[1].lkey = abi::kInvalidLkey;
    a().host.put(ring_ + 64 * index, entry);
  }
  void posted(std::uint32_t count) {
    abi::QpDoorbellRecord record;
    record.receive_producer = count;
    a().host.put(record_, record);
  }
  void send() {
    b().post_send({.opcode = abi::SendOpcode::send, .length = 8, .blueflame = false});
    run(20);
  }
  std::uint64_t ring_ = 0, record_ = 0;
};

TEST_F(SharedMistakes, RightChain) {
  for (std::uint16_t i = 0; i < 7; ++i) put(i, static_cast<std::uint16_t>(i + 1));
  posted(7);
  for (int i = 0; i < 4; ++i) send();
  // Entries 0 and 2 are free: they are linked behind 7, the entry that is not posted.
  put(7, 2);
  put(2, 0);
  posted(9);
  for (int i = 0; i < 4; ++i) send();
  expect_nothing();
}

TEST_F(SharedMistakes, NextNamesAPostedEntry) {
  put(0, 1);
  put(1, 2);
  put(2, 0);
  posted(3);
  send();
  expect_finding(FindingKind::srq_next_posted, {"shared receive queue 3, entry 2", "next names entry 0"});
}

TEST_F(SharedMistakes, NextOfAnotherByteOrder) {
  put(0, 0x0100);
  posted(1);
  send();
  expect_finding(FindingKind::wrong_endianness, {"entry 0: next 0x100 is no entry", "the entry is 1"});
}

TEST_F(SharedMistakes, MoreThanThereAre) {
  put(0, 1);
  posted(9);
  send();
  expect_finding(FindingKind::past_ring, {"shared receive queue 3", "receive_producer 9", "the ring has at most 7"});
}

}  // namespace
}  // namespace rnicsim::driver_check
