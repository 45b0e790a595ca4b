// SPDX-License-Identifier: Apache-2.0
#include "model/host/pci_function.h"

#include <fmt/format.h>

#include <array>
#include <boost/endian/conversion.hpp>
#include <stdexcept>

#include "model/abi/device.h"

namespace rnicsim::host {
namespace {

// Address that firmware would assign: the root complex routes by offset, so any aligned address works.
constexpr std::uint64_t kBarAddress = 0x20'0000'0000;

[[noreturn]] void refuse(const std::string& why) { throw std::runtime_error("the device cannot be used: " + why); }

}  // namespace

void PciFunction::identify() {
  const std::uint32_t identity = root_complex_.config_read(0, 4);
  if (identity != (std::uint32_t{abi::kPciDeviceId} << 16 | abi::kPciVendorId))
    refuse(fmt::format("PCI identity {:04x}:{:04x}", identity & 0xffff, identity >> 16));
  size_bar();
  root_complex_.config_write(abi::config::kCommand, 2, abi::config::kCommandMemory);

  const auto magic = static_cast<std::uint32_t>(root_complex_.mmio_read(abi::reg::kMagic, 4));
  if (magic != abi::kMagicValue) refuse(fmt::format("register page begins with {:#010x}", magic));
  const auto version = static_cast<std::uint32_t>(root_complex_.mmio_read(abi::reg::kAbiVersion, 4));
  if (version >> 16 != abi::kAbiMajor)
    refuse(fmt::format("the device's ABI is {}.{}, this driver needs {}.{}", version >> 16, version & 0xffff,
                       abi::kAbiMajor, abi::kAbiMinor));
}

void PciFunction::size_bar() {
  using namespace abi::config;
  for (const std::uint16_t half : {kBar0, std::uint16_t(kBar0 + 4)}) root_complex_.config_write(half, 4, 0xffffffff);
  const std::uint64_t low = root_complex_.config_read(kBar0, 4) & ~0xfu;
  const std::uint64_t high = root_complex_.config_read(kBar0 + 4, 4);
  const std::uint64_t size = ~(high << 32 | low) + 1;
  if (size != abi::kBarSize) refuse(fmt::format("BAR0 has {} bytes", size));
  root_complex_.config_write(kBar0, 4, static_cast<std::uint32_t>(kBarAddress));
  root_complex_.config_write(kBar0 + 4, 4, static_cast<std::uint32_t>(kBarAddress >> 32));
}

void PciFunction::enable(std::uint32_t vectors) {
  using namespace abi::config;
  const std::uint32_t control = root_complex_.config_read(kMsixControl, 2);
  const std::uint32_t table_size = (control & 0x7ff) + 1;
  if (table_size < vectors) refuse(fmt::format("{} MSI-X vectors, {} are needed", table_size, vectors));
  for (std::uint32_t vector = 0; vector < vectors; ++vector) route_vector(vector);
  root_complex_.config_write(kMsixControl, 2, kMsixEnable);
  root_complex_.config_write(kCommand, 2, kCommandMemory | kCommandBusMaster);
}

void PciFunction::route_vector(std::uint32_t vector) {
  const std::uint64_t address = abi::kMsiWindow + 16ull * vector;
  const std::uint32_t words[] = {std::uint32_t(address), std::uint32_t(address >> 32), vector, 0 /* not masked */};
  for (std::uint32_t i = 0; i < 4; ++i) {
    std::array<std::byte, 4> data;
    boost::endian::store_little_u32(reinterpret_cast<unsigned char*>(data.data()), words[i]);
    root_complex_.mmio_write(abi::kMsixTable + 16 * vector + 4 * i, Payload::copy_of(data));
  }
}

}  // namespace rnicsim::host
