// SPDX-License-Identifier: Apache-2.0
// Mistakes at the command queue, with objects and with memory: each is reported at its first wrong access.
#include "model/nic/queues/command_unit.h"
#include "tests/unit/driver_check/checked_pair.h"

namespace rnicsim::driver_check {
namespace {

using abi::CommandOpcode;
using abi::CommandStatus;
using nic::test::kKey;
using nic::test::kQpn;
using nic::test::kSendCqn;

class CommandMistakes : public CheckedPair {
 protected:
  void SetUp() override {
    build({});
    bring_up();
  }
  static abi::CommandHeader header(CommandOpcode opcode, std::uint32_t object = 0) {
    abi::CommandHeader header;
    header.opcode = std::uint16_t(opcode);
    header.object = object;
    return header;
  }
  abi::CommandEntry entry_of(std::uint32_t bytes) {
    abi::CommandEntry entry;
    entry.owner = 1;
    entry.input_bytes = bytes;
    entry.input = a().mailbox();
    entry.output = a().mailbox() + 4096;
    entry.output_bytes = 4096;
    return entry;
  }
  void doorbell(std::uint32_t entries) { a().write_be(abi::reg::kCommandDoorbell, entries); }
  CommandStatus destroy_region() { return a().command(header(CommandOpcode::destroy_mpt, kKey >> 8)); }
};

TEST_F(CommandMistakes, DoorbellOfAnotherByteOrder) {
  a().host.put(a().mailbox(), header(CommandOpcode::query_device));
  a().host.put(a().command_queue(), entry_of(16));
  a().host.mmio(abi::reg::kCommandDoorbell, little(1u));
  expect_finding(FindingKind::wrong_endianness,
                 {"kCommandDoorbell announces 0x1000000", "in big-endian order the bits are 0x1"});
}

TEST_F(CommandMistakes, DoorbellBeforeTheEntry) {
  doorbell(4);
  expect_finding(FindingKind::entry_not_owned, {"entry 2", "owner byte"});
}

TEST_F(CommandMistakes, OpcodeOfAnotherByteOrder) {
  abi::CommandHeader wrong;
  wrong.opcode = 0x0001;  // 0x0100 in little-endian
  EXPECT_EQ(a().command(wrong), CommandStatus::bad_opcode);
  expect_finding(FindingKind::wrong_endianness, {"0x0001 is no opcode", "0x0100, query_device"});
}

TEST_F(CommandMistakes, InputBytesOfAnotherByteOrder) {
  a().host.put(a().mailbox(), header(CommandOpcode::query_device));
  auto entry = entry_of(16);
  entry.input_bytes = 16u << 24;
  EXPECT_EQ(a().run_entry(entry), CommandStatus::bad_input_length);
  expect_finding(FindingKind::wrong_endianness, {"input_bytes 0x10000000", "the value is 16"});
}

TEST_F(CommandMistakes, ObjectOfAnotherByteOrder) {
  EXPECT_EQ(a().command(header(CommandOpcode::query_qp, kQpn << 24)), CommandStatus::bad_resource);
  expect_finding(FindingKind::wrong_endianness, {"0x11000000 is no queue pair", "the number is 17"});
}

TEST_F(CommandMistakes, MailboxRewrittenInFlight) {
  a().host.put(a().mailbox(), header(CommandOpcode::query_qp, kQpn));
  a().host.put(a().command_queue(), entry_of(16));
  doorbell(1);
  auto other = header(CommandOpcode::query_qp, kQpn);
  other.modifier = 1;
  a().host.put(a().mailbox(), other);
  run(10);
  expect_finding(FindingKind::mailbox_rewritten, {"command entry 0", "input mailbox changed", "at byte 0x03"});
}

TEST_F(CommandMistakes, EntryRewrittenInFlight) {
  a().host.put(a().mailbox(), header(CommandOpcode::query_qp, kQpn));
  a().host.put(a().command_queue(), entry_of(16));
  bool taken = false;
  a().nic.blocks().command_unit.taken.subscribe([&taken](const nic::CommandTaken&) { taken = true; });
  doorbell(1);
  for (int i = 0; i < 1000 && !taken; ++i) run(0.01);
  auto entry = entry_of(16);
  entry.token = 77;
  a().host.put(a().command_queue(), entry);
  run(10);
  expect_finding(FindingKind::mailbox_rewritten, {"command entry 0", "the entry changed", "returned the entry"});
}

TEST_F(CommandMistakes, ReservedBytesOfAMailbox) {
  auto query = header(CommandOpcode::query_qp, kQpn);
  query.reserved[1] = 5;
  EXPECT_EQ(a().command(query), CommandStatus::ok);
  expect_finding(FindingKind::reserved_bytes, {"mailbox of query_qp", "0x0f", "CommandHeader is 0x05"});
}

TEST_F(CommandMistakes, OwnerBitsOfANewRing) {
  abi::CreateCq cq;
  cq.header = header(CommandOpcode::create_cq, 5);
  cq.context.log_entries = 3;
  cq.context.pasid = nic::test::kPasid;
  cq.context.ring = a().host.allocate(512);
  cq.context.doorbell_record = a().host.allocate(64);
  cq.context.eqn = 1;
  for (int i = 0; i < 6; ++i) a().host.at(cq.context.ring + 64 * i)[63] = std::byte{abi::Cqe::kInitialOwner};
  EXPECT_EQ(a().command(cq), CommandStatus::ok);
  expect_finding(FindingKind::owner_bits, {"completion queue 5", "2 of the 8 entries", "the first is entry 6"});
}

TEST_F(CommandMistakes, DestroyedInUse) {
  EXPECT_EQ(a().command(header(CommandOpcode::destroy_cq, kSendCqn)), CommandStatus::resource_busy);
  expect_finding(FindingKind::in_use, {"destroy_cq 1", "another object still uses"});
}

TEST_F(CommandMistakes, DoorbellOfADestroyedQueuePair) {
  EXPECT_EQ(a().destroy_qp(), CommandStatus::ok);
  run(3);
  a().write_be(page() + abi::uar::kSendDoorbell, std::uint64_t{kQpn} << 32 | 1);
  expect_finding(FindingKind::destroyed_object, {"queue pair 17 was destroyed", "us ago"});
}

TEST_F(CommandMistakes, RegionDestroyedUnderTraffic) {
  EXPECT_EQ(destroy_region(), CommandStatus::ok);
  write();
  run(20);
  expect_finding(FindingKind::destroyed_object, {"key 0x755", "the key was destroyed", "us ago"});
}

TEST_F(CommandMistakes, KeyOfAnotherByteOrder) {
  a().post_send(
      {.opcode = abi::SendOpcode::write, .length = 8, .remote = at_b(), .lkey = 0x55070000, .blueflame = false});
  run(20);
  expect_finding(FindingKind::wrong_endianness, {"key 0x55070000", "the key is 0x755"});
}

TEST_F(CommandMistakes, UnknownKey) {
  a().post_send({.opcode = abi::SendOpcode::write, .length = 8, .remote = at_b(), .lkey = 0x999, .blueflame = false});
  run(20);
  expect_finding(FindingKind::unknown_object, {"key 0x999", "no such key"});
}

TEST_F(CommandMistakes, DmaToMemoryThatWasNeverMapped) {
  abi::CreateMpt region = a().region(9 << 8, 0x7000'0000'0000, 4096, 0xf);
  EXPECT_EQ(a().command(region), CommandStatus::ok);
  a().post_send({.opcode = abi::SendOpcode::write,
                 .length = 8,
                 .remote = at_b(),
                 .address = 0x7000'0000'0000,
                 .lkey = 9 << 8,
                 .blueflame = false});
  run(20);
  expect_finding(FindingKind::never_mapped, {"DMA read of 8 bytes at 0x700000000000 of PASID 9", "ever mapped"});
}

TEST_F(CommandMistakes, DmaToMemoryThatWasUnmapped) {
  const auto ring = a().send_ring;
  check().mapped(nic::test::kPasid, ring, 4096);
  run(1);
  check().unmapped(nic::test::kPasid, ring, 4096);
  run(7);
  a().host.refuse_from = ring;
  a().write_be(page() + abi::uar::kSendDoorbell, std::uint64_t{kQpn} << 32 | 1);
  run(20);
  // The doorbell record is unmapped, too.
  ASSERT_FALSE(check().findings().empty());
  const auto& first = check().findings().front();
  EXPECT_EQ(first.kind, FindingKind::unmapped) << first.line();
  EXPECT_NE(first.text.find("(send ring of queue pair 17): the memory was unmapped 7."), std::string::npos)
      << first.text;
}

}  // namespace
}  // namespace rnicsim::driver_check
