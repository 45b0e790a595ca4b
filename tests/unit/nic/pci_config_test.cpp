// SPDX-License-Identifier: Apache-2.0
// Configuration space as the kernel's PCI code reads it.
#include "model/nic/pcie/pci_config.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

#include "model/abi/device.h"
#include "model/nic/nic.h"
#include "model/nic/nic_params.h"
#include "model/nic/personality/personality.h"
#include "tests/unit/nic/nic_pair.h"

namespace rnicsim::nic::test {
namespace {

constexpr std::uint16_t kPcie = abi::config::kPcieCapability;
constexpr std::uint16_t kPower = abi::config::kPowerCapability;
constexpr std::uint16_t kErrors = abi::config::kErrorReporting;

class ConfigSpace : public ::testing::Test {
 protected:
  std::uint32_t read(unsigned offset, std::size_t bytes = 4) const {
    std::array<std::byte, 4> data{};
    EXPECT_TRUE(config_.read(static_cast<std::uint16_t>(offset), std::span(data).first(bytes)));
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) value |= std::to_integer<std::uint32_t>(data[i]) << (8 * i);
    return value;
  }
  void write(unsigned offset, std::uint32_t value, std::size_t bytes = 4) {
    std::array<std::byte, 4> data{};
    for (std::size_t i = 0; i < bytes; ++i) data[i] = std::byte(value >> (8 * i));
    EXPECT_TRUE(config_.write(static_cast<std::uint16_t>(offset), std::span(data).first(bytes)));
  }
  std::vector<std::pair<unsigned, unsigned>> capabilities() const {  // id, offset
    std::vector<std::pair<unsigned, unsigned>> found;
    for (unsigned at = read(abi::config::kCapabilityPointer, 1); at != 0 && found.size() < 48; at = read(at + 1, 1))
      found.emplace_back(read(at, 1), at);
    return found;
  }

  PciConfig config_{
      rnic_personality().layout.pci,
      {.link_generation = 4, .link_lanes = 8, .max_payload = 512, .serial_number = 0x0200'00ff'fe00'0001}};
};

TEST_F(ConfigSpace, BothListsOfCapabilitiesAreWhole) {
  EXPECT_EQ(capabilities(), (std::vector<std::pair<unsigned, unsigned>>{
                                {0x10, kPcie}, {0x11, abi::config::kMsixCapability}, {0x01, kPower}}));
  EXPECT_EQ(read(kErrors) & 0xfffff, 0x20001u);  // advanced error reporting, version 2
  EXPECT_EQ(read(kErrors) >> 20, abi::config::kSerialNumber);
  EXPECT_EQ(read(abi::config::kSerialNumber), 0x00010003u);  // the last extended capability
  EXPECT_EQ(read(abi::config::kSerialNumber + 4), 0xfe00'0001u);
  EXPECT_EQ(read(abi::config::kSerialNumber + 8), 0x0200'00ffu);
}

TEST_F(ConfigSpace, AnEndpointsRegistersAfterPowerUp) {
  EXPECT_EQ(read(kPcie + 2, 2), 0x0002u);                    // version 2, endpoint
  EXPECT_EQ(read(kPcie + 4), 0x10008022u);                   // FLR, role-based errors, extended tags, 512 bytes
  EXPECT_EQ(read(abi::config::kDeviceControl, 2), 0x2810u);  // reads of 512 bytes, no snoop, relaxed ordering
  EXPECT_EQ(read(kPcie + 0x0c) & 0x3ff, 8u << 4 | 4);        // Gen4 x8
  EXPECT_EQ(read(kPcie + 0x12, 2), 1u << 12 | 8u << 4 | 4);
  EXPECT_EQ(read(kPcie + 0x24), 0x1fu);  // completion timeout: all ranges, and disable
  EXPECT_EQ(read(kPcie + 0x2c), 0x1eu);  // Gen1 to Gen4
  EXPECT_EQ(read(kPcie + 0x30, 2), 4u);
  EXPECT_EQ(read(kPower + 2, 2), 3u);  // D0 and D3hot, no PME
  EXPECT_EQ(read(kPower + 4, 2), 8u);  // no soft reset
  EXPECT_EQ(read(kErrors + 0x0c), 0x00462030u);
  EXPECT_EQ(read(kErrors + 0x14), 0xe000u);
  EXPECT_EQ(read(abi::config::kCommand, 2), 0u);
  EXPECT_EQ(read(0x3d, 1), 0u);  // no INTx
}

// A driver that writes ones to each register changes only the writable bits.
TEST_F(ConfigSpace, AllOnesChangeWhatMayBeWrittenAlone) {
  const auto written = [this](unsigned offset, std::size_t bytes) {
    write(offset, ~0u, bytes);
    return read(offset, bytes);
  };
  EXPECT_EQ(written(0, 4), std::uint32_t{abi::kPciDeviceId} << 16 | abi::kPciVendorId);
  EXPECT_EQ(written(abi::config::kCommand, 2), 0x0546u);
  EXPECT_EQ(written(abi::config::kBar0, 4), 0xff80000cu);
  EXPECT_EQ(written(abi::config::kBar0 + 4, 4), ~0u);
  EXPECT_EQ(written(abi::config::kBar0 + 8, 4), 0u);  // no other BAR
  EXPECT_EQ(written(0x30, 4), 0u);                    // no ROM
  EXPECT_EQ(written(kPcie + 4, 4), 0x10008022u);
  EXPECT_EQ(written(kPcie + 0x10, 2), 0x03cbu);
  EXPECT_EQ(written(kPcie + 0x28, 2), 0x1fu);
  EXPECT_EQ(written(abi::config::kMsixControl, 2), 0xc03fu);
  EXPECT_EQ(written(kErrors + 0x08, 4), 0x007ff030u);
  EXPECT_FALSE(config_.take_function_reset());
  EXPECT_EQ(written(abi::config::kDeviceControl, 2), 0x79ffu);
  EXPECT_TRUE(config_.take_function_reset());
}

TEST_F(ConfigSpace, AFunctionThatSleepsDoesNothing) {
  write(abi::config::kCommand, 6, 2);
  write(abi::config::kMsixControl, abi::config::kMsixEnable, 2);
  ASSERT_TRUE(config_.memory_enabled() && config_.bus_master() && config_.msix_enabled());
  write(kPower + 4, 1, 2);  // D1 is not supported
  EXPECT_EQ(read(kPower + 4, 2), 8u);
  write(kPower + 4, 3, 2);
  EXPECT_EQ(read(kPower + 4, 2), 0xbu);
  EXPECT_FALSE(config_.memory_enabled() || config_.bus_master() || config_.msix_enabled());
  write(kPower + 4, 2, 2);  // D2 is not supported
  EXPECT_EQ(read(kPower + 4, 2), 0xbu);
  write(kPower + 4, 0, 2);
  EXPECT_TRUE(config_.memory_enabled() && config_.bus_master() && config_.msix_enabled());  // all state is kept
}

TEST_F(ConfigSpace, RefusedRequestsAreReported) {
  config_.unsupported_request(false);
  EXPECT_EQ(read(kPcie + 0x0a, 2), 0x9u);  // unsupported, and correctable: a read is answered
  EXPECT_EQ(read(kErrors + 4), 1u << 20);
  EXPECT_EQ(read(kErrors + 0x10), 1u << 13);
  config_.unsupported_request(true);
  EXPECT_EQ(read(kPcie + 0x0a, 2), 0xbu);
  write(kPcie + 0x0a, 0x2, 2);  // writing 1 clears the bit
  EXPECT_EQ(read(kPcie + 0x0a, 2), 0x9u);
  write(kPcie + 0x0a, 0xf, 2);
  EXPECT_EQ(read(kPcie + 0x0a, 2), 0u);
  write(kErrors + 0x0c, 1u << 20);
  config_.unsupported_request(false);
  EXPECT_EQ(read(kPcie + 0x0a, 2), 0xcu);  // fatal, if the driver selects it
  config_.aborted_request();
  EXPECT_EQ(read(0x06, 2), 0x2010u);
  write(0x06, 0x2000, 2);
  EXPECT_EQ(read(0x06, 2), 0x0010u);
}

TEST_F(ConfigSpace, AFunctionLevelResetLeavesWhatIsStickyAndTheLinks) {
  config_.unsupported_request(true);
  write(abi::config::kCommand, 6, 2);
  write(abi::config::kBar0, 0xfe000000);
  write(abi::config::kDeviceControl, 0x5850, 2);  // reads of 4096 bytes, payloads of 512
  write(kPcie + 0x10, 0x40, 2);
  write(kErrors + 0x08, 1u << 20);
  write(kPower + 4, 3, 2);
  config_.reset();
  EXPECT_EQ(read(abi::config::kCommand, 2), 0u);
  EXPECT_EQ(read(abi::config::kBar0), 0xcu);
  EXPECT_EQ(read(abi::config::kDeviceControl, 2), 0x2850u);
  EXPECT_EQ(read(kPcie + 0x0a, 2), 0u);
  EXPECT_EQ(read(kPcie + 0x10, 2), 0x40u);
  EXPECT_EQ(read(kErrors + 0x04), 1u << 20);
  EXPECT_EQ(read(kErrors + 0x08), 1u << 20);
  EXPECT_EQ(read(kPower + 4, 2), 8u);
}

TEST_F(ConfigSpace, WhatIsNotThereReadsZero) {
  for (unsigned offset : {0x28u, 0x38u, 0x7cu, 0x98u, 0xfcu, 0x148u, 0x15cu, 0xffcu}) EXPECT_EQ(read(offset), 0u);
  std::array<std::byte, 4> data{};
  EXPECT_FALSE(config_.read(0xffe, data));
  EXPECT_FALSE(config_.write(0xffe, data));
}

class ConfigOfNics : public Pair {};

TEST_F(ConfigOfNics, ShowTheirLinkTheirAddressAndTheirErrors) {
  auto& host = a().host;
  const auto link = NicParams{}.dma.link;
  EXPECT_EQ(host.config_read(kPcie + 0x12, 2) & 0x3ff, link.lanes << 4 | link.generation);
  const auto mac = NicParams{}.capabilities.mac;
  EXPECT_EQ(host.config_read(abi::config::kSerialNumber + 4, 4), 0xfe000000u | (mac & 0xffffff));
  EXPECT_EQ(host.config_read(abi::config::kSerialNumber + 8, 4), (mac >> 24 << 8 & 0xffffffff) | 0xff);
  EXPECT_EQ(host.config_read(kPcie + 0x0a, 2), 0u);
  EXPECT_FALSE(host.mmio(abi::reg::kMagic, std::array<std::byte, 4>{}));
  EXPECT_EQ(host.config_read(kPcie + 0x0a, 2), 0xau);
  host.mmio_read(abi::reg::kCommandDoorbell);
  EXPECT_EQ(host.config_read(kPcie + 0x0a, 2), 0xbu);
  EXPECT_EQ(host.config_read(0x06, 2), 0x10u);
  a().write_be(abi::reg::kCommandQueueBase, std::uint64_t{1} << 40);
  a().write_be(abi::reg::kCommandDoorbell, 1u);
  run(10);
  EXPECT_EQ(host.config_read(0x06, 2), 0x2010u);  // the command queue has no address
}

}  // namespace
}  // namespace rnicsim::nic::test
