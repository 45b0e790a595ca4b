// SPDX-License-Identifier: Apache-2.0
// Mistakes at configuration space, registers and interrupts: each is reported at its first wrong access.
#include "tests/unit/driver_check/checked_pair.h"

namespace rnicsim::driver_check {
namespace {

class AccessMistakes : public CheckedPair {
 protected:
  void command_register(std::uint32_t value) { a().host.config_write(abi::config::kCommand, value, 2); }
  void enable() { command_register(abi::config::kCommandMemory | abi::config::kCommandBusMaster); }
  void reset() { a().host.config_write(abi::config::kDeviceControl, abi::config::kFunctionLevelReset, 2); }
  bool read(std::uint64_t offset, unsigned bytes) {
    std::array<unsigned char, 8> data{};
    tlm::tlm_generic_payload request;
    request.set_command(tlm::TLM_READ_COMMAND);
    request.set_address(offset);
    request.set_data_ptr(data.data());
    request.set_data_length(bytes);
    auto delay = sc_core::SC_ZERO_TIME;
    a().host.bar->b_transport(request, delay);
    return request.is_response_ok();
  }
};

TEST_F(AccessMistakes, MemorySpaceOff) {
  EXPECT_FALSE(read(abi::reg::kMagic, 4));
  expect_finding(FindingKind::memory_space_off, {"read of BAR0 + 0x000 (kMagic)", "set bit 1 of Command"});
  EXPECT_FALSE(read(abi::reg::kStatus, 4));  // reported once
  expect_nothing();
}

TEST_F(AccessMistakes, DoorbellWhileMemorySpaceIsOff) {
  a().write_be(abi::reg::kCommandDoorbell, 1u);
  expect_finding(FindingKind::memory_space_off, {"write of BAR0 + 0x088 (kCommandDoorbell)"});
}

TEST_F(AccessMistakes, ResetWithoutRestore) {
  enable();
  reset();
  run(3);
  EXPECT_FALSE(read(abi::reg::kMagic, 4));
  expect_finding(FindingKind::memory_space_off, {"kMagic", "function-level reset 3 us ago", "restore"});
}

TEST_F(AccessMistakes, AccessWithinTheResetWindow) {
  enable();
  reset();
  enable();
  run(99'000);
  expect_nothing();  // configuration space may be read
  EXPECT_TRUE(read(abi::reg::kMagic, 4));
  expect_finding(FindingKind::reset_window, {"kMagic", "99 ms after a function-level reset", "wait 100 ms"});
  EXPECT_EQ(check().findings().back().at, 99_ms);
}

TEST_F(AccessMistakes, AccessBehindTheResetWindow) {
  enable();
  reset();
  enable();
  run(100'000);
  EXPECT_TRUE(read(abi::reg::kMagic, 4));
  expect_nothing();
}

TEST_F(AccessMistakes, WrongWidth) {
  enable();
  EXPECT_FALSE(read(abi::reg::kStatus, 8));
  expect_finding(FindingKind::wrong_width, {"read of 8 bytes", "BAR0 + 0x024 (kStatus)", "kStatus has 32 bits"});
  const auto& accesses = check().findings().back().accesses;
  ASSERT_EQ(accesses.size(), 2u);
  EXPECT_NE(accesses[0].find("configuration space + 0x004 (kCommand): 0x0006"), std::string::npos) << accesses[0];
  EXPECT_NE(accesses[1].find("read of 8 bytes of BAR0 + 0x024 (kStatus): refused"), std::string::npos) << accesses[1];
}

TEST_F(AccessMistakes, DoorbellInTwoStores) {
  bring_up();
  a().write_be(page() + abi::uar::kSendDoorbell, nic::test::kQpn);
  expect_finding(FindingKind::wrong_width, {"write of 4 bytes", "UAR page 3, kSendDoorbell", "one store of 8 bytes"});
}

TEST_F(AccessMistakes, WrongDirection) {
  enable();
  EXPECT_FALSE(read(abi::reg::kCommandDoorbell, 4));
  expect_finding(FindingKind::wrong_direction, {"read of", "kCommandDoorbell", "write only"});
  a().write_be(abi::reg::kStatus, 1u);
  expect_finding(FindingKind::wrong_direction, {"write of", "kStatus", "read only"});
  EXPECT_FALSE(read(page(), 8));
  expect_finding(FindingKind::wrong_direction, {"UAR pages are write only"});
}

TEST_F(AccessMistakes, NoRegister) {
  enable();
  EXPECT_FALSE(read(0x0f0, 4));
  expect_finding(FindingKind::no_register, {"BAR0 + 0x0f0 (no register)"});
  a().write_be(page() + 0x30, std::uint64_t{1});
  expect_finding(FindingKind::no_register, {"UAR page 3 + 0x030", "no doorbell"});
}

TEST_F(AccessMistakes, CommandQueueOfAnotherByteOrder) {
  enable();
  const auto queue = a().host.allocate(4096);
  a().host.mmio(abi::reg::kCommandQueueBase, little(queue));
  expect_finding(FindingKind::wrong_endianness, {"kCommandQueueBase", "in big-endian order the address is 0x10000000"});
}

TEST_F(AccessMistakes, CommandQueueNotAligned) {
  enable();
  a().write_be(abi::reg::kCommandQueueBase, a().host.allocate(4096) + 64);
  expect_finding(FindingKind::bad_alignment, {"kCommandQueueBase", "4096"});
}

TEST_F(AccessMistakes, PollsWithoutProgress) {
  enable();
  for (int i = 0; i < 999; ++i) EXPECT_TRUE(read(abi::reg::kStatus, 4));
  expect_nothing();
  EXPECT_TRUE(read(abi::reg::kStatus, 4));
  expect_finding(FindingKind::no_progress, {"kStatus", "1000 times"});
}

TEST_F(AccessMistakes, PollsTheClock) {
  enable();
  for (int i = 0; i < 3000; ++i) {
    EXPECT_TRUE(read(abi::reg::kClock, 8));
    run(1);
  }
  expect_nothing();
}

TEST_F(AccessMistakes, BusMasterOff) {
  bring_up();
  command_register(abi::config::kCommandMemory);
  write();
  run(20);
  expect_finding(FindingKind::bus_master_off, {"DMA read", "bus mastering is off"});
}

TEST_F(AccessMistakes, MsixDisabled) {
  bring_up();
  a().write_be(abi::kUarBase + abi::uar::kEqDoorbell, std::uint64_t{1} << 32);
  a().host.config_write(abi::config::kMsixControl, 0, 2);
  a().arm(nic::test::kSendCqn, false);
  write();
  run(20);
  expect_finding(FindingKind::interrupt_lost, {"vector 2", "MSI-X is disabled", "lost"});
}

TEST_F(AccessMistakes, VectorMaskedForEver) {
  bring_up();
  a().write_be(abi::kUarBase + abi::uar::kEqDoorbell, std::uint64_t{1} << 32);
  a().write_be(abi::kMsixTable + 16 * 2 + 12, __builtin_bswap32(1));
  a().arm(nic::test::kSendCqn, false);
  write();
  run(20);
  expect_nothing();  // the vector may still be unmasked
  run(10'000);
  a().host.mmio_read(abi::reg::kStatus);
  expect_finding(FindingKind::interrupt_masked, {"vector 2", "masked", "stays pending"});
}

TEST_F(AccessMistakes, VectorUnmaskedInTime) {
  bring_up();
  a().write_be(abi::kUarBase + abi::uar::kEqDoorbell, std::uint64_t{1} << 32);
  a().write_be(abi::kMsixTable + 16 * 2 + 12, __builtin_bswap32(1));
  a().arm(nic::test::kSendCqn, false);
  write();
  run(20);
  a().write_be(abi::kMsixTable + 16 * 2 + 12, 0u);
  run(20);
  check().finish();
  expect_nothing();
}

TEST_F(AccessMistakes, TellsWhatWasTouched) {
  bring_up();
  EXPECT_FALSE(read(abi::reg::kStatus, 8));
  const auto text = check().burndown();
  EXPECT_NE(text.find("registers used: kCommandQueueBase 1, kCommandDoorbell "), std::string::npos) << text;
  EXPECT_NE(text.find("registers never used: kMagic, "), std::string::npos) << text;
  EXPECT_NE(text.find("registers refused: kStatus 1"), std::string::npos) << text;
  EXPECT_NE(text.find("doorbells never used: kSendDoorbell, "), std::string::npos) << text;
  EXPECT_NE(text.find("commands used: initialize 1, map_icm 4, "), std::string::npos) << text;
  EXPECT_EQ(text.find("refused: query"), std::string::npos) << text;
}

}  // namespace
}  // namespace rnicsim::driver_check
