// SPDX-License-Identifier: Apache-2.0
// Layouts of the messages of vfio-user, version 0, in the byte order of the host.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rnicsim::sim::vfio_user {

inline constexpr std::uint16_t kMajor = 0;
inline constexpr std::uint16_t kMinor = 0;

enum class Command : std::uint16_t {
  version = 1,
  dma_map = 2,
  dma_unmap = 3,
  get_info = 4,
  get_region_info = 5,
  get_region_io_fds = 6,
  get_irq_info = 7,
  set_irqs = 8,
  region_read = 9,
  region_write = 10,
  dma_read = 11,  // dma_read and dma_write are sent by the server
  dma_write = 12,
  reset = 13,
  region_write_multi = 15,
  feature = 16,  // migration, from here on: not supported
  migration_read = 17,
  migration_write = 18,
};

struct Header {
  static constexpr std::uint32_t kTypeMask = 0xf;
  static constexpr std::uint32_t kReply = 0x1;
  static constexpr std::uint32_t kNoReply = 0x10;
  static constexpr std::uint32_t kError = 0x20;

  std::uint16_t id = 0;  // chosen by the sender
  Command command{};
  std::uint32_t bytes = 0;  // length of the message with this header
  std::uint32_t flags = 0;
  std::uint32_t error = 0;  // an errno, with kError
};
static_assert(sizeof(Header) == 16);

// JSON text that ends with NUL may follow.
struct Version {
  std::uint16_t major = 0;
  std::uint16_t minor = 0;
};

struct DmaMap {
  static constexpr std::uint32_t kRead = 1;
  static constexpr std::uint32_t kWrite = 2;

  std::uint32_t argsz = 0;
  std::uint32_t flags = 0;
  std::uint64_t offset = 0;  // offset in the file
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(DmaMap) == 32);

struct DmaUnmap {
  static constexpr std::uint32_t kAll = 2;

  std::uint32_t argsz = 0;
  std::uint32_t flags = 0;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(DmaUnmap) == 24);

struct DeviceInfo {
  static constexpr std::uint32_t kResets = 1;
  static constexpr std::uint32_t kPci = 2;

  std::uint32_t argsz = 0;
  std::uint32_t flags = 0;
  std::uint32_t regions = 0;
  std::uint32_t irqs = 0;
};
static_assert(sizeof(DeviceInfo) == 16);

// Regions of a PCI device: BARs 0 to 5, ROM, configuration space, VGA.
inline constexpr std::uint32_t kRegions = 9;
inline constexpr std::uint32_t kBar0 = 0;
inline constexpr std::uint32_t kConfig = 7;

struct RegionInfo {
  static constexpr std::uint32_t kRead = 1;
  static constexpr std::uint32_t kWrite = 2;

  std::uint32_t argsz = 0;
  std::uint32_t flags = 0;
  std::uint32_t index = 0;
  std::uint32_t capabilities = 0;
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;
};
static_assert(sizeof(RegionInfo) == 32);

struct RegionIoFds {
  std::uint32_t argsz = 0;
  std::uint32_t flags = 0;
  std::uint32_t index = 0;
  std::uint32_t count = 0;
};
static_assert(sizeof(RegionIoFds) == 16);

// Interrupts of a PCI device: INTx, MSI, MSI-X, errors, requests to release the device.
inline constexpr std::uint32_t kIrqs = 5;
inline constexpr std::uint32_t kMsix = 2;

struct IrqInfo {
  static constexpr std::uint32_t kEventfd = 1;

  std::uint32_t argsz = 0;
  std::uint32_t flags = 0;
  std::uint32_t index = 0;
  std::uint32_t count = 0;
};
static_assert(sizeof(IrqInfo) == 16);

// With kBool a byte for each interrupt follows.
struct IrqSet {
  static constexpr std::uint32_t kNone = 1;
  static constexpr std::uint32_t kBool = 2;
  static constexpr std::uint32_t kEventfd = 4;
  static constexpr std::uint32_t kDataMask = 0x07;
  static constexpr std::uint32_t kMask = 0x08;
  static constexpr std::uint32_t kUnmask = 0x10;
  static constexpr std::uint32_t kTrigger = 0x20;
  static constexpr std::uint32_t kActionMask = 0x38;

  std::uint32_t argsz = 0;
  std::uint32_t flags = 0;
  std::uint32_t index = 0;
  std::uint32_t start = 0;
  std::uint32_t count = 0;
};
static_assert(sizeof(IrqSet) == 20);

// The data follows.
struct RegionAccess {
  std::uint64_t offset = 0;
  std::uint32_t region = 0;
  std::uint32_t count = 0;
};
static_assert(sizeof(RegionAccess) == 16);

// A count of 64 bits precedes the first entry.
struct RegionWriteOfMany {
  std::uint64_t offset = 0;
  std::uint32_t region = 0;
  std::uint32_t count = 0;
  std::byte data[8] = {};
};
static_assert(sizeof(RegionWriteOfMany) == 24);

struct DmaAccess {
  std::uint64_t address = 0;
  std::uint64_t count = 0;
};
static_assert(sizeof(DmaAccess) == 16);

}  // namespace rnicsim::sim::vfio_user
