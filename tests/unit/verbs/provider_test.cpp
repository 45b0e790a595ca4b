// SPDX-License-Identifier: Apache-2.0
// The driver's rings and commands, with a device that is a few lines of the test.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "model/abi/device.h"
#include "verbs/provider/command_queue.h"
#include "verbs/provider/commands.h"
#include "verbs/provider/completion_ring.h"
#include "verbs/provider/event_ring.h"
#include "verbs/provider/receive_ring.h"
#include "verbs/provider/send_ring.h"
#include "verbs/provider/shared_receive_ring.h"

namespace rnicsim::provider {
namespace {

struct Write {
  std::uint32_t offset = 0;
  std::vector<std::byte> data;
};

// Memory shared by driver and "device", page-aligned as real rings are.
class Memory {
 public:
  explicit Memory(std::size_t bytes) : pages_((bytes + sizeof(Page) - 1) / sizeof(Page)) {}
  DmaBuffer buffer() { return {pages_.data()->bytes.data(), 0x1000}; }
  template <class T>
  T* as(std::size_t offset = 0) {
    return reinterpret_cast<T*>(pages_.data()->bytes.data() + offset);
  }

 private:
  struct alignas(4096) Page {
    std::array<std::byte, 4096> bytes{};
  };
  std::vector<Page> pages_;
};

Mmio record_into(std::vector<Write>& writes) {
  return [&writes](std::uint32_t offset, std::span<const std::byte> data) {
    writes.push_back({offset, {data.begin(), data.end()}});
  };
}

constexpr std::uint32_t kQpn = 0x1234;
constexpr std::uint32_t kPage = 3;
constexpr std::uint32_t kUar = abi::kUarBase + kPage * abi::kUarPageSize;

class SendRingTest : public ::testing::Test {
 protected:
  static constexpr std::uint8_t kLogBlocks = 3;

  SendRing::Layout layout(std::uint32_t capacity, bool blue_flame = true) const {
    return {.qpn = kQpn, .log_blocks = kLogBlocks, .capacity = capacity, .blue_flame = blue_flame};
  }
  static WqeBuilder wqe_of_blocks(std::uint32_t blocks) {
    WqeBuilder wqe;
    wqe.begin(abi::SendOpcode::send, abi::ControlSegment::kSignaled);
    for (std::uint32_t i = 1; i < blocks * 4; ++i) wqe.data(i, i, 0x1000 + i);
    return wqe;
  }
  std::byte* block(std::size_t index) { return ring_memory_.as<std::byte>(index * abi::kSendBlock); }

  Memory ring_memory_{abi::kSendBlock << kLogBlocks};
  Memory record_memory_{64};
  abi::QpDoorbellRecord* record_ = record_memory_.as<abi::QpDoorbellRecord>();
  std::vector<Write> writes_;
  Uar uar_{record_into(writes_), kPage};
};

TEST_F(SendRingTest, WritesControlSegmentAndDoorbellRecord) {
  SendRing ring(layout(8), ring_memory_.buffer(), record_, &uar_);
  WqeBuilder wqe;
  wqe.begin(abi::SendOpcode::write_with_imm, abi::ControlSegment::kFence, 0xabcd);
  wqe.remote_address(0x1122334455667788, 0x99);
  wqe.data(0x42, 7, 0x500);
  ring.post(wqe, 77);
  ASSERT_TRUE(ring.ring());
  EXPECT_FALSE(ring.ring());

  const auto& control = *reinterpret_cast<abi::ControlSegment*>(block(0));
  EXPECT_EQ(control.opcode, abi::SendOpcode::write_with_imm);
  EXPECT_EQ(control.wqe_index, 0);
  EXPECT_EQ(control.segments, 3);
  EXPECT_EQ(control.qpn_flags, kQpn << 8 | abi::ControlSegment::kFence);
  EXPECT_EQ(control.immediate, 0xabcdu);
  const auto& remote = *reinterpret_cast<abi::RemoteAddressSegment*>(block(0) + 16);
  EXPECT_EQ(remote.address, 0x1122334455667788u);
  EXPECT_EQ(remote.rkey, 0x99u);
  EXPECT_EQ(record_->send_producer, 1u);
}

TEST_F(SendRingTest, WqeWrapsRoundTheEnd) {
  SendRing ring(layout(4), ring_memory_.buffer(), record_, &uar_);
  WqeBuilder first = wqe_of_blocks(7);
  ring.post(first, 1);
  ring.ring();
  EXPECT_EQ(ring.retire(0), 1u);

  WqeBuilder second = wqe_of_blocks(2);
  ring.post(second, 2);
  ring.ring();
  EXPECT_EQ(reinterpret_cast<abi::ControlSegment*>(block(7))->wqe_index, 7);
  const auto& wrapped = *reinterpret_cast<abi::DataSegment*>(block(0));
  EXPECT_EQ(wrapped.address, 4u);
  EXPECT_EQ(wrapped.lkey, 0x1004u);
  EXPECT_EQ(record_->send_producer, 9u);
  // The BlueFlame image is contiguous although the WQE wraps in the ring.
  const Write& write = writes_.back();
  ASSERT_EQ(write.data.size(), 128u);
  EXPECT_EQ(std::memcmp(write.data.data(), block(7), 64), 0);
  EXPECT_EQ(std::memcmp(write.data.data() + 64, block(0), 64), 0);
}

TEST_F(SendRingTest, FullExactlyAtCapacityAndFreedByALaterCompletion) {
  SendRing ring(layout(5), ring_memory_.buffer(), record_, &uar_);
  for (int i = 0; i < 5; ++i) {
    ASSERT_FALSE(ring.full()) << i;
    WqeBuilder wqe = wqe_of_blocks(1);
    ring.post(wqe, 10 + std::uint64_t(i));
  }
  EXPECT_TRUE(ring.full());
  // The CQE of the fourth also frees the three unsignalled before it.
  EXPECT_EQ(ring.retire(3), 13u);
  EXPECT_EQ(ring.outstanding(), 1u);
}

TEST_F(SendRingTest, KeepsWrIdsOverManyLapsOfTheIndex) {
  SendRing ring(layout(2), ring_memory_.buffer(), record_, &uar_);
  std::uint32_t producer = 0;
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    WqeBuilder wqe = wqe_of_blocks(1 + i % 3);
    ring.post(wqe, i);
    ring.ring();
    ASSERT_EQ(ring.retire(std::uint16_t(producer)), i);
    producer += wqe.blocks();
    ASSERT_EQ(record_->send_producer, producer & 0xffff);
    ASSERT_EQ(ring.outstanding(), 0u);
  }
}

TEST_F(SendRingTest, SingleWqesAlternateBetweenTheBlueFlameWindows) {
  SendRing ring(layout(8), ring_memory_.buffer(), record_, &uar_);
  for (int i = 0; i < 4; ++i) {
    WqeBuilder wqe = wqe_of_blocks(1);
    ring.post(wqe, 0);
    ring.ring();
  }
  ASSERT_EQ(writes_.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(writes_[i].offset, kUar + (i % 2 ? abi::uar::kBlueFlame1 : abi::uar::kBlueFlame0));
    EXPECT_EQ(writes_[i].data.size(), 64u);
  }
}

TEST_F(SendRingTest, PlainDoorbellForListsLargeWqesAndWithoutBlueFlame) {
  SendRing ring(layout(8), ring_memory_.buffer(), record_, &uar_);
  WqeBuilder one = wqe_of_blocks(1), other = wqe_of_blocks(1), largest = wqe_of_blocks(4), large = wqe_of_blocks(5);
  ring.post(one, 0);
  ring.post(other, 0);
  ring.ring();
  ring.post(largest, 0);
  ring.ring();
  ring.retire(2);
  ring.post(large, 0);
  ring.ring();
  ASSERT_EQ(writes_.size(), 3u);
  EXPECT_EQ(writes_[0].offset, kUar + abi::uar::kSendDoorbell);
  EXPECT_EQ(writes_[1].offset, kUar + abi::uar::kBlueFlame0);
  EXPECT_EQ(writes_[1].data.size(), 256u);
  EXPECT_EQ(writes_[2].offset, kUar + abi::uar::kSendDoorbell);
  abi::SendDoorbell doorbell;
  std::memcpy(static_cast<void*>(&doorbell), writes_[2].data.data(), sizeof doorbell);
  EXPECT_EQ(doorbell.qpn, kQpn);
  EXPECT_EQ(doorbell.producer, 11u);

  writes_.clear();
  SendRing plain(layout(8, false), ring_memory_.buffer(), record_, &uar_);
  plain.post(one, 0);
  plain.ring();
  EXPECT_EQ(writes_.at(0).offset, kUar + abi::uar::kSendDoorbell);
}

TEST_F(SendRingTest, RollbackDiscardsABatch) {
  SendRing ring(layout(8), ring_memory_.buffer(), record_, &uar_);
  WqeBuilder wqe = wqe_of_blocks(1);
  ring.post(wqe, 1);
  ring.ring();
  const auto mark = ring.mark();
  ring.post(wqe, 2);
  ring.post(wqe, 3);
  ring.rollback(mark);
  EXPECT_FALSE(ring.ring());
  EXPECT_EQ(ring.outstanding(), 1u);
  EXPECT_EQ(record_->send_producer, 1u);
}

TEST(WqeBuilder, InlineDataIsCountedAndPadded) {
  WqeBuilder wqe;
  wqe.begin(abi::SendOpcode::send, 0);
  const std::array<std::byte, 5> piece{std::byte(1), std::byte(2), std::byte(3), std::byte(4), std::byte(5)};
  wqe.begin_inline();
  wqe.inline_bytes(piece);
  wqe.inline_bytes(piece);
  wqe.end_inline();
  EXPECT_TRUE(wqe.fits());
  EXPECT_EQ(wqe.size(), 32u);  // 16 + 4 + 10, padded
  EXPECT_EQ(wqe_bytes_with_inline(abi::Transport::rc, 220), 256u);
  EXPECT_EQ(wqe_bytes_with_inline(abi::Transport::rc, 0), 0u);
  EXPECT_EQ(inline_capacity(abi::Transport::rc, 4), 220u);
  EXPECT_EQ(inline_capacity(abi::Transport::ud, 4), 188u);
  EXPECT_EQ(inline_capacity(abi::Transport::ud, 1), 0u);
}

TEST(WqeBuilder, HeadersOfSegmentsArePadded) {
  WqeBuilder wqe;
  const std::array<std::byte, 54> headers{};
  wqe.begin(abi::SendOpcode::tso, 0);
  wqe.segmentation(1000, headers);
  EXPECT_EQ(wqe.size(), 16 + 16 + 64u);
  wqe.data(0, 0, 0);
  EXPECT_TRUE(wqe.fits());
  EXPECT_EQ(wqe.size(), wqe_bytes_with_sges(abi::Transport::raw, 1) + wqe_bytes_of_segmentation(54));
  EXPECT_EQ(wqe_bytes_of_segmentation(0), 0u);
  WqeBuilder narrow(1);
  narrow.begin(abi::SendOpcode::tso, 0);
  narrow.segmentation(1000, headers);
  EXPECT_FALSE(narrow.fits());
}

TEST(WqeBuilder, RefusesWhatDoesNotFit) {
  WqeBuilder wqe;
  wqe.begin(abi::SendOpcode::send, 0);
  for (int i = 0; i < 63; ++i) wqe.data(0, 0, 0);
  EXPECT_TRUE(wqe.fits());
  wqe.data(0, 0, 0);
  EXPECT_FALSE(wqe.fits());
}

class ReceiveRingTest : public ::testing::Test {
 protected:
  Memory ring_memory_{4096};
  Memory record_memory_{64};
  abi::QpDoorbellRecord* record_ = record_memory_.as<abi::QpDoorbellRecord>();
  ReceiveRing ring_{{.log_entries = 2, .log_stride = log_receive_stride(3)}, ring_memory_.buffer(), record_};

  void post(std::uint64_t wr_id, std::uint32_t segments) {
    ring_.open(wr_id);
    for (std::uint32_t i = 0; i < segments; ++i) ring_.segment(i, 100 + i, 0x700);
    ring_.close();
  }
};

TEST_F(ReceiveRingTest, EndsAShortListWithTheInvalidKey) {
  EXPECT_EQ(ring_.max_segments(), 4u);
  post(1, 1);
  post(2, 4);
  const auto* segments = ring_memory_.as<abi::DataSegment>();
  EXPECT_EQ(segments[0].byte_count, 100u);
  EXPECT_EQ(segments[1].lkey, abi::kInvalidLkey);
  EXPECT_EQ(segments[7].byte_count, 103u);
}

TEST_F(ReceiveRingTest, FullExactlyAtCapacityAndPublishedByTheRecord) {
  for (std::uint64_t i = 0; i < 4; ++i) {
    ASSERT_FALSE(ring_.full());
    post(i, 1);
  }
  EXPECT_TRUE(ring_.full());
  EXPECT_EQ(record_->receive_producer, 0u);
  EXPECT_TRUE(ring_.ring());
  EXPECT_EQ(record_->receive_producer, 4u);
  EXPECT_EQ(ring_.retire(0), 0u);
  EXPECT_FALSE(ring_.full());
}

TEST_F(ReceiveRingTest, KeepsWrIdsOverManyLapsOfTheIndex) {
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    post(i, 1);
    ring_.ring();
    ASSERT_EQ(ring_.retire(std::uint16_t(i)), i);
    ASSERT_EQ(ring_.outstanding(), 0u);
  }
}

class SharedReceiveRingTest : public ::testing::Test {
 protected:
  static constexpr SharedReceiveRing::Layout kLayout{.log_entries = 2, .log_stride = 6};
  Memory ring_memory_{4 << 6}, larger_{16 << 6}, record_memory_{64};
  abi::QpDoorbellRecord* record_ = record_memory_.as<abi::QpDoorbellRecord>();
  SharedReceiveRing ring_{kLayout, ring_memory_.buffer(), record_};

  void post(std::uint64_t wr_id, std::uint32_t segments = 1) {
    ring_.open(wr_id);
    for (std::uint32_t i = 0; i < segments; ++i) ring_.segment(100 * wr_id, 10, 0x700);
    ring_.close();
    ring_.ring();
  }
  // Follows the links as the device does: from entry 0, as many as were posted.
  static std::uint16_t follow(Memory& memory, std::size_t entries) {
    std::uint16_t index = 0;
    for (std::size_t i = 0; i < entries; ++i) index = memory.as<abi::SrqNextSegment>()[index * 4u].next;
    return index;
  }
};

TEST_F(SharedReceiveRingTest, OneEntryStaysUnposted) {
  EXPECT_EQ(ring_.capacity(), 3u);
  EXPECT_EQ(ring_.max_segments(), 3u);
  for (std::uint64_t id = 0; id < 3; ++id) post(id);
  EXPECT_EQ(ring_.outstanding(), 3u);
  EXPECT_EQ(record_->receive_producer, 3u);
  EXPECT_EQ(follow(ring_memory_, 3), 3u);
}

TEST_F(SharedReceiveRingTest, WhatComesFreeIsPostedAgainInThatOrder) {
  for (std::uint64_t id = 10; id < 13; ++id) post(id);
  EXPECT_EQ(ring_.retire(1), 11u);
  EXPECT_EQ(ring_.retire(0), 10u);
  EXPECT_EQ(ring_.retire(0), 0u) << "it is nobody's";
  EXPECT_EQ(ring_.retire(99), 0u);
  post(13);
  post(14, 3);
  EXPECT_EQ(ring_.outstanding(), 3u);
  EXPECT_EQ(ring_.segments(3)[0].address, 1300u);
  EXPECT_EQ(ring_.segments(1).size(), 3u);
  EXPECT_TRUE(ring_.segments(0).empty());
  EXPECT_EQ(ring_.retire(3), 13u);
  EXPECT_EQ(ring_.retire(1), 14u);
  EXPECT_EQ(ring_.retire(2), 12u);
}

TEST_F(SharedReceiveRingTest, GrowsWhereItStands) {
  for (std::uint64_t id = 0; id < 3; ++id) post(id);
  ring_.retire(1);
  ring_.copy_to(larger_.buffer(), 4);
  ring_.move_to(larger_.buffer(), 4);
  EXPECT_EQ(ring_.capacity(), 15u);
  for (std::uint64_t id = 3; id < 16; ++id) post(id);
  EXPECT_EQ(ring_.outstanding(), 15u);
  EXPECT_EQ(ring_.segments(2)[0].address, 200u) << "of before";
  EXPECT_EQ(ring_.retire(3), 3u);
  EXPECT_EQ(ring_.retire(1), 4u);
  EXPECT_EQ(ring_.retire(4), 5u);
}

TEST_F(SharedReceiveRingTest, StridesHoldTheirSegments) {
  EXPECT_EQ(log_shared_receive_stride(0), 5);
  EXPECT_EQ(log_shared_receive_stride(1), 5);
  EXPECT_EQ(log_shared_receive_stride(2), 6);
  EXPECT_EQ(log_shared_receive_stride(3), 6);
  EXPECT_EQ(log_shared_receive_stride(30), 9);
  EXPECT_EQ(log_shared_receive_stride(60), 10);
}

class CompletionRingTest : public ::testing::Test {
 protected:
  static constexpr std::uint8_t kLogEntries = 3;

  // As the device does: writes everything but the owner byte, then the owner byte.
  void produce(std::uint32_t qpn, std::uint32_t value) {
    abi::Cqe& cqe = memory_.as<abi::Cqe>()[produced_ & 7];
    cqe.qpn = qpn;
    cqe.byte_count = value;
    publish(cqe.opcode_owner,
            std::uint8_t(std::uint8_t(abi::CqeOpcode::receive_send) << 4 | (produced_ >> kLogEntries & 1)));
    ++produced_;
  }

  Memory memory_{sizeof(abi::Cqe) << kLogEntries};
  Memory record_memory_{64};
  abi::CqDoorbellRecord* record_ = record_memory_.as<abi::CqDoorbellRecord>();
  CompletionRing ring_{kLogEntries, memory_.buffer(), record_};
  std::uint64_t produced_ = 0;
};

TEST_F(CompletionRingTest, NothingBelongsToTheDriverAtFirst) { EXPECT_FALSE(ring_.take()); }

TEST_F(CompletionRingTest, OwnershipHoldsOverManyLaps) {
  std::uint32_t expected = 0;
  for (std::uint32_t round = 0; round < 10'000; ++round) {
    const std::uint32_t burst = round % 9;  // up to a full ring
    for (std::uint32_t i = 0; i < burst; ++i) produce(1, std::uint32_t(produced_));
    for (std::uint32_t i = 0; i < burst; ++i) {
      const auto cqe = ring_.take();
      ASSERT_TRUE(cqe);
      ASSERT_EQ(cqe->byte_count, expected++);
    }
    ASSERT_FALSE(ring_.take());
    ring_.release();
    ASSERT_EQ(record_->consumer, expected & 0xffffff);
  }
}

TEST_F(CompletionRingTest, RemovesOneQpAndKeepsTheOthersInOrder) {
  for (std::uint32_t lap = 0; lap < 5; ++lap) {
    const std::array<std::uint32_t, 8> qpns{1, 2, 1, 1, 2, 2, 1, 2};
    for (std::uint32_t i = 0; i < 5 + lap % 4; ++i) produce(qpns[i], i);
    ring_.remove_if([](const abi::Cqe& cqe) { return cqe.qpn == 1; });
    for (std::uint32_t i = 0; i < 5 + lap % 4; ++i) {
      if (qpns[i] == 1) continue;
      const auto cqe = ring_.take();
      ASSERT_TRUE(cqe);
      EXPECT_EQ(cqe->qpn, 2u);
      EXPECT_EQ(cqe->byte_count, i);
    }
    EXPECT_FALSE(ring_.take());
    ring_.release();
    EXPECT_EQ(record_->consumer, produced_);
  }
}

TEST_F(CompletionRingTest, ArmingLeavesOutWhatIsAlreadyThere) {
  std::vector<Write> writes;
  Uar uar(record_into(writes), kPage);
  produce(1, 0);
  produce(1, 1);
  ring_.arm(uar, 0x55, true);
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_EQ(writes[0].offset, kUar + abi::uar::kCqArm);
  abi::CqArm arm;
  std::memcpy(static_cast<void*>(&arm), writes[0].data.data(), sizeof arm);
  EXPECT_EQ(arm.cqn_flags, 0x55u << 8 | abi::CqArm::kSolicitedOnly);
  EXPECT_EQ(arm.consumer, 2u);
}

// A later doorbell includes the earlier ones: a missing doorbell shows only if it is the last.
TEST(Uar, EveryDoorbellGoesToTheDevice) {
  std::vector<Write> writes;
  Uar uar(record_into(writes), kPage);
  const std::array<std::byte, 64> wqe{};
  for (std::uint32_t i = 0; i < 5000; ++i) {
    writes.clear();
    uar.ring_send(kQpn, i);
    uar.blue_flame(wqe);
    uar.arm_cq(5, false, i);
    uar.ring_eq(1, i);
    ASSERT_EQ(writes.size(), 4u) << "round " << i;
    EXPECT_EQ(writes[0].offset, kUar + abi::uar::kSendDoorbell);
    EXPECT_EQ(writes[1].offset, kUar + (i % 2 != 0 ? abi::uar::kBlueFlame1 : abi::uar::kBlueFlame0));
    EXPECT_EQ(writes[2].offset, kUar + abi::uar::kCqArm);
    EXPECT_EQ(writes[3].offset, kUar + abi::uar::kEqDoorbell);
  }
}

TEST(EventRing, OwnershipHoldsOverManyLapsAndRearmTellsTheConsumer) {
  constexpr std::uint8_t kLogEntries = 2;
  Memory memory(4096);
  EventRing ring(7, kLogEntries, memory.buffer());
  std::vector<Write> writes;
  Uar uar(record_into(writes), 0);
  EXPECT_FALSE(ring.take());
  const auto end = EventRing::first(kLogEntries) + 1000;
  for (auto i = EventRing::first(kLogEntries); i < end; ++i) {
    abi::Eqe& eqe = memory.as<abi::Eqe>()[i & 3];
    eqe.type = abi::EventType::cq_error;
    eqe.number = i;
    publish(eqe.owner, std::uint8_t(i >> kLogEntries & 1));
    const auto taken = ring.take();
    ASSERT_TRUE(taken);
    ASSERT_EQ(taken->number, i);
    ASSERT_FALSE(ring.take());
  }
  ring.rearm(uar);
  abi::EqDoorbell doorbell;
  std::memcpy(static_cast<void*>(&doorbell), writes.at(0).data.data(), sizeof doorbell);
  EXPECT_EQ(writes[0].offset, abi::kUarBase + abi::uar::kEqDoorbell);
  EXPECT_EQ(doorbell.eqn, 7u);
  EXPECT_EQ(doorbell.consumer, end);
}

class CommandQueueTest : public ::testing::Test {
 protected:
  Memory ring_{CommandQueue::kRingBytes};
  Memory mailboxes_{CommandQueue::kMailboxesBytes};
  std::vector<Write> writes_;
  CommandQueue queue_{ring_.buffer(), mailboxes_.buffer(), record_into(writes_)};

  abi::CommandEntry& entry(CommandQueue::Slot slot) { return ring_.as<abi::CommandEntry>()[slot]; }
  std::byte* at(std::uint64_t bus_address) { return mailboxes_.as<std::byte>(bus_address - 0x1000); }
};

TEST_F(CommandQueueTest, CarriesACommandAndItsAnswer) {
  const auto input = header(abi::CommandOpcode::query_port, 1);
  const auto slot = queue_.submit(encode(input), sizeof(abi::PortAttributes));
  ASSERT_TRUE(slot);
  ASSERT_EQ(writes_.size(), 1u);
  EXPECT_EQ(writes_[0].offset, abi::reg::kCommandDoorbell);
  EXPECT_EQ(abi::load_be<std::uint32_t>(writes_[0].data.data()), 1u << *slot);
  EXPECT_EQ(entry(*slot).owner, 1);
  EXPECT_FALSE(queue_.try_complete(*slot));

  const auto seen = decode<abi::CommandHeader>({at(entry(*slot).input), entry(*slot).input_bytes});
  EXPECT_EQ(abi::CommandOpcode(std::uint16_t(seen.opcode)), abi::CommandOpcode::query_port);
  EXPECT_EQ(seen.object, 1u);

  abi::PortAttributes answer;
  answer.gid_table_length = 16;
  std::memcpy(at(entry(*slot).output), &answer, sizeof answer);
  entry(*slot).status = abi::CommandStatus::ok;
  publish(entry(*slot).owner, std::uint8_t(0));
  const auto completion = queue_.try_complete(*slot);
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->status, abi::CommandStatus::ok);
  EXPECT_EQ(decode<abi::PortAttributes>(completion->output).gid_table_length, 16);
  EXPECT_FALSE(queue_.try_complete(*slot));
}

TEST_F(CommandQueueTest, RefusesWhenFullAndReusesFreedSlots) {
  const auto input = header(abi::CommandOpcode::teardown);
  for (std::uint32_t i = 0; i < CommandQueue::kEntries; ++i) ASSERT_TRUE(queue_.submit(encode(input), 16));
  EXPECT_FALSE(queue_.submit(encode(input), 16));
  publish(entry(9).owner, std::uint8_t(0));
  ASSERT_TRUE(queue_.try_complete(9));
  EXPECT_EQ(queue_.submit(encode(input), 16), 9u);
}

TEST(Commands, CarryNumbersAndContexts) {
  abi::Qpc qpc;
  qpc.remote_qpn = 0x123456;
  const auto modify = decode<abi::ModifyQp>(encode(modify_qp(9, abi::qp_attr::kRemoteQpn, qpc)));
  EXPECT_EQ(modify.header.object, 9u);
  EXPECT_EQ(modify.attributes, abi::qp_attr::kRemoteQpn);
  EXPECT_EQ(modify.context.remote_qpn, 0x123456u);

  const std::array<std::uint8_t, 16> gid{0xfe, 0x80};
  const std::array<std::uint8_t, 6> mac{2, 0, 0, 0, 0, 1};
  const auto set = set_gid(1, 3, gid, mac);
  EXPECT_EQ(set.index, 3);
  EXPECT_EQ(set.valid, 1);
  EXPECT_EQ(set.gid[1], 0x80);
  EXPECT_EQ(set.mac[5], 1);
  EXPECT_EQ(set.vlan, 0);
  EXPECT_EQ(set_gid(1, 3, gid, mac, 100).vlan, 100);
  EXPECT_EQ(clear_gid(1, 3).valid, 0);
  EXPECT_EQ(map_icm(abi::IcmTable::mpt, 16, 4, 0x2000).memory, 0x2000u);
}

TEST(Commands, StatusMeansAnErrno) {
  using enum abi::CommandStatus;
  EXPECT_EQ(to_errno(ok), 0);
  EXPECT_EQ(to_errno(bad_parameter), EINVAL);
  EXPECT_EQ(to_errno(bad_state), EINVAL);
  EXPECT_EQ(to_errno(bad_resource), ENOENT);
  EXPECT_EQ(to_errno(resource_busy), EBUSY);
  EXPECT_EQ(to_errno(exceeds_limit), ENOMEM);
  EXPECT_EQ(to_errno(not_supported), EOPNOTSUPP);
  EXPECT_EQ(to_errno(internal_error), EIO);
}

// The memory ordering of dma.h with a device in another thread; under ThreadSanitizer this verifies the ordering.
TEST(Ordering, ADeviceInAnotherThreadSeesWholeWqesAndIsSeenWhole) {
  constexpr std::uint32_t kRounds = 20'000;
  constexpr std::uint8_t kLog = 4;
  Memory send_memory(4096), record_memory(128), completion_memory(4096);
  auto* record = record_memory.as<abi::QpDoorbellRecord>();
  auto* cq_record = record_memory.as<abi::CqDoorbellRecord>(64);
  Uar uar([](std::uint32_t, std::span<const std::byte>) {}, kPage);
  SendRing send({.qpn = kQpn, .log_blocks = kLog, .capacity = 1u << kLog}, send_memory.buffer(), record, &uar);
  CompletionRing completions(kLog, completion_memory.buffer(), cq_record);

  std::jthread device([&] {
    for (std::uint32_t done = 0; done < kRounds;) {
      if (std::uint32_t(observe(record->send_producer)) == (done & 0xffff)) continue;
      const std::byte* wqe = send_memory.as<std::byte>(std::size_t(done % (1u << kLog)) * abi::kSendBlock);
      const auto data = decode<abi::DataSegment>({wqe + sizeof(abi::ControlSegment), sizeof(abi::DataSegment)});
      abi::Cqe& cqe = completion_memory.as<abi::Cqe>()[done % (1u << kLog)];
      cqe.byte_count = std::uint32_t(data.address);
      cqe.wqe_counter = std::uint16_t(done);
      publish(cqe.opcode_owner, std::uint8_t(done >> kLog & 1));
      ++done;
    }
  });
  for (std::uint32_t posted = 0, polled = 0; polled < kRounds;) {
    if (posted < kRounds && !send.full()) {
      WqeBuilder wqe;
      wqe.begin(abi::SendOpcode::send, abi::ControlSegment::kSignaled);
      wqe.data(posted, 1, 1);
      send.post(wqe, posted++);
      send.ring();
    }
    if (const auto cqe = completions.take()) {
      ASSERT_EQ(cqe->byte_count, polled);
      ASSERT_EQ(send.retire(cqe->wqe_counter), polled);
      completions.release();
      ++polled;
    }
  }
}

}  // namespace
}  // namespace rnicsim::provider
