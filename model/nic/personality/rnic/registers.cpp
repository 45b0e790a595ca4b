// SPDX-License-Identifier: Apache-2.0
// PCI function, sizes and register page of the device in docs/device.md.
#include <algorithm>
#include <array>
#include <bit>

#include "model/abi/command.h"
#include "model/abi/device.h"
#include "model/nic/personality/rnic/rnic.h"

namespace rnicsim::nic {
namespace {

// Checks values that the layouts and the model share, and that are converted by a cast; for the others see
// tests/unit/roce/abi_and_roce_test.cpp.
template <class Ours, class Layout>
constexpr bool same(Ours ours, Layout layout) {
  return static_cast<std::uint64_t>(ours) == static_cast<std::uint64_t>(layout);
}
static_assert(same(CommandOpcode::query_device, abi::CommandOpcode::query_device) &&
              same(CommandOpcode::detach_multicast, abi::CommandOpcode::detach_multicast));
static_assert(same(RegionKind::region, abi::MptKind::region) && same(RegionKind::window1, abi::MptKind::window1) &&
              same(RegionKind::window2, abi::MptKind::window2) && same(RegionKind::null, abi::MptKind::null) &&
              same(RegionKind::device_memory, abi::MptKind::device_memory));
static_assert(access::kLocalWrite == abi::access::kLocalWrite && access::kZeroBased == abi::access::kZeroBased &&
              access::kWindowBind == abi::access::kWindowBind &&
              access::kRelaxedOrdering == abi::access::kRelaxedOrdering);
static_assert(kIcmTables == std::size(abi::kIcmEntryBytes));
static_assert(roce::kMulticastQpn == abi::kMulticastQpn);

constexpr std::uint32_t kPageBytes = 4096;

Layout layout_of_rnic() {
  Layout layout;
  layout.pci = {.vendor = abi::kPciVendorId,
                .device = abi::kPciDeviceId,
                .class_code = abi::kPciClassCode,
                .revision = abi::kPciRevision,
                .pcie_capability = abi::config::kPcieCapability,
                .msix_capability = abi::config::kMsixCapability,
                .power_capability = abi::config::kPowerCapability,
                .serial_capability = abi::config::kSerialNumber,
                .bar_bytes = abi::kBarSize,
                .registers = abi::kRegisterPage,
                .msix_table = abi::kMsixTable,
                .msix_pending = abi::kMsixPba,
                .msix_vectors = abi::kMsixVectors,
                .uar = abi::kUarBase,
                .uar_page_bytes = abi::kUarPageSize,
                .uar_pages = abi::kUarPages,
                .device_memory = abi::kDeviceMemoryBase,
                .most_device_memory = abi::kMostDeviceMemory};
  layout.log_send_block = std::countr_zero(abi::kSendBlock);
  layout.send_head = sizeof(abi::ControlSegment);
  layout.data_segment = sizeof(abi::DataSegment);
  layout.qp_record = sizeof(abi::QpDoorbellRecord);
  layout.cq_record = sizeof(abi::CqDoorbellRecord);
  layout.cqe = sizeof(abi::Cqe);
  layout.inline_receive = sizeof(abi::Cqe::inline_data);
  layout.eqe = sizeof(abi::Eqe);
  layout.log_commands = abi::kCommandLogEntries;
  layout.command_entry = sizeof(abi::CommandEntry);
  layout.command_header = sizeof(abi::CommandHeader);
  layout.mailbox = abi::kMailboxBytes;
  std::ranges::copy(abi::kIcmEntryBytes, layout.contexts.begin());
  return layout;
}

// Readable registers: each whole; a 64-bit register also as two 32-bit words.
struct Register {
  std::uint32_t offset;
  std::uint32_t bytes;
};
constexpr Register kReadable[] = {
    {abi::reg::kMagic, 4},
    {abi::reg::kAbiVersion, 4},
    {abi::reg::kFeatures, 8},
    {abi::reg::kFirmwareVersion, 8},
    {abi::reg::kUarInfo, 4},
    {abi::reg::kBlueFlameSize, 4},
    {abi::reg::kCommandLogEntries, 4},
    {abi::reg::kStatus, 4},
    {abi::reg::kHealthSyndrome, 4},
    {abi::reg::kHealthCounter, 4},
    {abi::reg::kCoreClockKhz, 4},
    {abi::reg::kCommandQueueBase, 8},
    {abi::reg::kClock, 8},
};

bool is_readable(std::uint32_t offset, std::size_t bytes) {
  return std::ranges::any_of(kReadable, [&](const Register& one) {
    if (offset == one.offset && bytes == one.bytes) return true;
    return one.bytes == 8 && bytes == 4 && (offset == one.offset || offset == one.offset + 4);
  });
}

std::array<std::byte, kPageBytes> page_of(const DeviceRegisters& registers) {
  using namespace abi;
  std::array<std::byte, kPageBytes> page{};
  const auto put32 = [&](std::uint32_t at, std::uint32_t value) { store_be(page.data() + at, value); };
  const auto put64 = [&](std::uint32_t at, std::uint64_t value) { store_be(page.data() + at, value); };
  put32(reg::kMagic, kMagicValue);
  put32(reg::kAbiVersion, std::uint32_t{kAbiMajor} << 16 | kAbiMinor);
  put64(reg::kFeatures, feature_bits(registers.features));
  put64(reg::kFirmwareVersion, kFirmware);
  put32(reg::kUarInfo, kUarPages);
  put32(reg::kBlueFlameSize, uar::kBlueFlameBytes);
  put32(reg::kCommandLogEntries, abi::kCommandLogEntries);
  put32(reg::kStatus, static_cast<std::uint32_t>(registers.status));
  put32(reg::kHealthSyndrome, static_cast<std::uint32_t>(registers.syndrome));
  put32(reg::kHealthCounter, registers.health_counter);
  put32(reg::kCoreClockKhz, registers.core_clock_khz);
  put64(reg::kCommandQueueBase, registers.command_queue);
  put64(reg::kClock, registers.clock);
  return page;
}

}  // namespace

const Personality& rnic_personality() {
  static const RnicPersonality rnic;
  return rnic;
}

RnicPersonality::RnicPersonality() : Personality(layout_of_rnic()) {}

std::uint64_t feature_bits(const DeviceFeatures& features) {
  using namespace abi::feature;
  return kBlueFlame | kRc | (features.invalidate ? kInvalidate : 0) | (features.uc ? kUc : 0) |
         (features.ud ? kUd : 0) | (features.multicast ? kMulticast : 0) | (features.windows ? kWindows : 0) |
         (features.srq ? kSrq : 0) | (features.raw ? kRaw : 0) | (features.atomic_write ? kAtomicWrite : 0) |
         (features.pacing ? kPacing : 0) | (features.source_qpn ? kSourceQpn : 0) |
         (features.device_memory ? kDeviceMemory : 0) | (features.write_padding ? kWritePadding : 0) |
         (features.relaxed_ordering ? kRelaxedOrdering : 0) | (features.xrc ? kXrc : 0) |
         (features.on_demand ? kOnDemand : 0) | (features.fast_register ? kFastRegister : 0);
}

bool RnicPersonality::read_registers(const DeviceRegisters& registers, std::uint32_t offset,
                                     std::span<std::byte> out) const {
  if (!is_readable(offset, out.size())) return false;
  const auto page = page_of(registers);
  std::copy_n(page.begin() + offset, out.size(), out.begin());
  return true;
}

std::optional<RegisterWrite> RnicPersonality::write_registers(const DeviceRegisters& registers, std::uint32_t offset,
                                                              std::span<const std::byte> data) const {
  using namespace abi::reg;
  if (offset == kCommandDoorbell && data.size() == 4)
    return RegisterWrite{.commands = abi::load_be<std::uint32_t>(data.data())};
  const bool inside = offset >= kCommandQueueBase && data.size() <= 8 && offset - kCommandQueueBase <= 8 - data.size();
  if (!inside || offset % 4 != 0 || data.size() % 4 != 0) return std::nullopt;
  std::array<std::byte, 8> base;
  abi::store_be(base.data(), registers.command_queue);
  std::ranges::copy(data, base.begin() + (offset - kCommandQueueBase));
  return RegisterWrite{.command_queue = abi::load_be<std::uint64_t>(base.data())};
}

}  // namespace rnicsim::nic
