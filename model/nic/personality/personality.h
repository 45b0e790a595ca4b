// SPDX-License-Identifier: Apache-2.0
// A device's layouts: registers and doorbells, work requests and completions, contexts and commands, as they are in the
// BAR and in host memory. All other blocks of the NIC know their contents but not their encoding: a second device is
// another Personality. One call decodes or encodes a whole entry.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/nic/personality/commands.h"
#include "model/nic/personality/contexts.h"
#include "model/nic/personality/queue_entries.h"
#include "model/nic/personality/values.h"

namespace rnicsim::nic {

// The PCI function and its BAR0. Offsets of capabilities are offsets in configuration space.
struct PciFunction {
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  std::uint32_t class_code = 0;
  std::uint8_t revision = 0;
  std::uint16_t pcie_capability = 0;
  std::uint16_t msix_capability = 0;
  std::uint16_t power_capability = 0;
  std::uint16_t serial_capability = 0;  // at 0x148 or above: error reporting is below
  std::uint32_t bar_bytes = 0;
  std::uint32_t registers = 0;  // offset of the register page, of 4 KiB
  std::uint32_t msix_table = 0;
  std::uint32_t msix_pending = 0;
  std::uint32_t msix_vectors = 0;  // at most 64
  std::uint32_t uar = 0;           // offset of the UAR pages
  std::uint32_t uar_page_bytes = 0;
  std::uint32_t uar_pages = 0;
  std::uint32_t device_memory = 0;       // offset of the device's own memory
  std::uint32_t most_device_memory = 0;  // bytes of device memory that the BAR can show
};

// Sizes in bytes that blocks of the NIC need.
struct Layout {
  PciFunction pci;
  std::uint8_t log_send_block = 0;  // log2: block of a send ring
  std::uint32_t send_head = 0;      // first bytes of a send WQE, which include its length
  std::uint32_t data_segment = 0;   // segment of a receive WQE's list
  std::uint32_t qp_record = 0;      // doorbell records
  std::uint32_t cq_record = 0;
  std::uint32_t cqe = 0;
  std::uint32_t inline_receive = 0;  // largest message that a CQE holds
  std::uint32_t eqe = 0;
  std::uint32_t log_commands = 0;  // entries of the command queue
  std::uint32_t command_entry = 0;
  std::uint32_t command_header = 0;                  // smallest input
  std::uint32_t mailbox = 0;                         // largest input
  std::array<std::uint32_t, kIcmTables> contexts{};  // entry size of each table

  std::uint32_t send_block() const { return 1u << log_send_block; }
};

// Values of the registers.
struct DeviceRegisters {
  DeviceFeatures features;
  DeviceStatus status = DeviceStatus::initializing;
  HealthSyndrome syndrome = HealthSyndrome::none;
  std::uint32_t health_counter = 0;
  std::uint32_t core_clock_khz = 0;
  std::uint64_t clock = 0;
  std::uint64_t command_queue = 0;
};

// Effects of a write to a register.
struct RegisterWrite {
  std::optional<std::uint64_t> command_queue{};
  std::optional<std::uint32_t> commands{};  // commands to execute: a bit for each entry
};

class Personality {
 public:
  explicit Personality(const Layout& sizes) : layout(sizes) {}
  virtual ~Personality() = default;
  Personality(const Personality&) = delete;
  Personality& operator=(const Personality&) = delete;

  const Layout layout;

  // --- Registers, by offset in the page. False, nullopt: no such register.
  virtual bool read_registers(const DeviceRegisters& registers, std::uint32_t offset,
                              std::span<std::byte> out) const = 0;
  virtual std::optional<RegisterWrite> write_registers(const DeviceRegisters& registers, std::uint32_t offset,
                                                       std::span<const std::byte> data) const = 0;

  // --- Doorbells, by offset in a UAR page, and the records in memory.
  virtual DoorbellWrite decode_doorbell(std::uint32_t offset, std::span<const std::byte> data) const = 0;
  virtual std::uint16_t receives_posted(std::span<const std::byte> record) const = 0;  // modulo 2^16; also for an SRQ
  virtual std::uint32_t cqes_consumed(std::span<const std::byte> record) const = 0;    // modulo 2^24

  // --- Work requests.
  // Blocks of a WQE by its length field; nullopt: invalid length. `wqe` has at least `send_head` bytes.
  virtual std::optional<std::uint16_t> send_blocks(std::span<const std::byte> wqe) const = 0;
  // `wqe` and `request` must be new.
  virtual void decode_send(std::span<const std::byte> bytes, Qpn qpn, std::uint16_t index, const SendRules& rules,
                           SendWqe& wqe, roce::SendRequest& request) const = 0;
  virtual ReceiveWqe decode_receive(std::span<const std::byte> wqe, std::uint16_t index) const = 0;
  virtual SharedReceive decode_shared_receive(std::span<const std::byte> entry, std::uint16_t index) const = 0;

  // --- Completions and events. `brought`: the message, if the entry carries it.
  virtual void encode(const Cqe& cqe, const CqePlace& place, std::span<const std::byte> brought,
                      std::span<std::byte> entry) const = 0;
  virtual void encode(EventType type, std::uint32_t number, bool owner, std::span<std::byte> entry) const = 0;

  // --- Contexts in memory.
  virtual void decode(std::span<const std::byte> bytes, QpContext& context) const = 0;
  virtual void decode(std::span<const std::byte> bytes, CompletionQueue& queue) const = 0;
  virtual void decode(std::span<const std::byte> bytes, EventQueueContext& queue) const = 0;
  virtual void decode(std::span<const std::byte> bytes, SharedReceiveQueue& queue) const = 0;
  virtual void decode(std::span<const std::byte> bytes, MemoryRegion& region) const = 0;
  virtual void decode(std::span<const std::byte> bytes, PageEntry& page) const = 0;
  virtual void encode(const QpContext& context, std::span<std::byte> bytes) const = 0;
  virtual void encode(const CompletionQueue& queue, std::span<std::byte> bytes) const = 0;
  virtual void encode(const EventQueueContext& queue, std::span<std::byte> bytes) const = 0;
  virtual void encode(const SharedReceiveQueue& queue, std::span<std::byte> bytes) const = 0;
  virtual void encode(const MemoryRegion& region, std::span<std::byte> bytes) const = 0;

  // --- Commands.
  virtual CommandEntry decode_command_entry(std::span<const std::byte> entry) const = 0;
  // `output_bytes`: the driver's space for the output.
  virtual Command decode_command(std::span<const std::byte> mailbox, std::uint32_t output_bytes) const = 0;
  virtual std::vector<std::byte> encode(const CommandResult& result, const CommandOutput& output) const = 0;
  // Bytes to write over the beginning of an entry when its command is done.
  virtual std::vector<std::byte> command_done(CommandStatus status) const = 0;
};

// The personality that docs/device.md publishes and verbs/provider drives.
const Personality& rnic_personality();

}  // namespace rnicsim::nic
