// A device's layouts: registers and doorbells, work requests and completions, contexts and commands, as they stand in
// its BAR and in host memory. All other blocks of the NIC know what is in them and not how it is written: a second
// device is another of these. One call decodes or encodes a whole entry.
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

// The PCI function and its BAR0. Offsets of capabilities are those in configuration space.
struct PciFunction {
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  std::uint32_t class_code = 0;
  std::uint8_t revision = 0;
  std::uint16_t pcie_capability = 0;
  std::uint16_t msix_capability = 0;
  std::uint16_t power_capability = 0;
  std::uint16_t serial_capability = 0;   // from 0x148 on: error reporting lies before it
  std::uint32_t bar_bytes = 0;
  std::uint32_t registers = 0;           // offset of the register page, of 4 KiB
  std::uint32_t msix_table = 0;
  std::uint32_t msix_pending = 0;
  std::uint32_t msix_vectors = 0;        // at most 64
  std::uint32_t uar = 0;                 // offset of the UAR pages
  std::uint32_t uar_page_bytes = 0;
  std::uint32_t uar_pages = 0;
  std::uint32_t device_memory = 0;       // offset of the device's own memory
  std::uint32_t most_device_memory = 0;  // bytes of it that the BAR has room for
};

// Sizes in bytes that blocks of the NIC reckon with.
struct Layout {
  PciFunction pci;
  std::uint8_t log_send_block = 0;       // log2: of a block of a send ring
  std::uint32_t send_head = 0;           // of a send WQE, as much as tells its length
  std::uint32_t data_segment = 0;        // of a receive WQE's list
  std::uint32_t qp_record = 0;           // doorbell records
  std::uint32_t cq_record = 0;
  std::uint32_t cqe = 0;
  std::uint32_t inline_receive = 0;      // the most of a message that a CQE holds
  std::uint32_t eqe = 0;
  std::uint32_t log_commands = 0;        // entries of the command queue
  std::uint32_t command_entry = 0;
  std::uint32_t command_header = 0;      // the least input
  std::uint32_t mailbox = 0;             // the largest input
  std::array<std::uint32_t, kIcmTables> contexts{};  // of each table's entries

  std::uint32_t send_block() const { return 1u << log_send_block; }
};

// What registers show.
struct DeviceRegisters {
  DeviceFeatures features;
  DeviceStatus status = DeviceStatus::initializing;
  HealthSyndrome syndrome = HealthSyndrome::none;
  std::uint32_t health_counter = 0;
  std::uint32_t core_clock_khz = 0;
  std::uint64_t clock = 0;
  std::uint64_t command_queue = 0;
};

// What a write to a register asks for.
struct RegisterWrite {
  std::optional<std::uint64_t> command_queue{};
  std::optional<std::uint32_t> commands{};  // to execute: a bit an entry
};

class Personality {
 public:
  explicit Personality(const Layout& sizes) : layout(sizes) {}
  virtual ~Personality() = default;
  Personality(const Personality&) = delete;
  Personality& operator=(const Personality&) = delete;

  const Layout layout;

  // --- Registers, by their offsets in the page. False, nullopt: there is none like that.
  virtual bool read_registers(const DeviceRegisters& registers, std::uint32_t offset,
                              std::span<std::byte> out) const = 0;
  virtual std::optional<RegisterWrite> write_registers(const DeviceRegisters& registers, std::uint32_t offset,
                                                       std::span<const std::byte> data) const = 0;

  // --- Doorbells, by their offsets in a UAR page, and the records in memory.
  virtual DoorbellWrite decode_doorbell(std::uint32_t offset, std::span<const std::byte> data) const = 0;
  virtual std::uint16_t receives_posted(std::span<const std::byte> record) const = 0;  // modulo 2^16; of an SRQ, too
  virtual std::uint32_t cqes_consumed(std::span<const std::byte> record) const = 0;    // modulo 2^24

  // --- Work requests.
  // Blocks that a WQE says it takes; nullopt: nonsense. It gets `send_head` bytes at least.
  virtual std::optional<std::uint16_t> send_blocks(std::span<const std::byte> wqe) const = 0;
  // Into a SendWqe and a request that are new.
  virtual void decode_send(std::span<const std::byte> bytes, Qpn qpn, std::uint16_t index, const SendRules& rules,
                           SendWqe& wqe, roce::SendRequest& request) const = 0;
  virtual ReceiveWqe decode_receive(std::span<const std::byte> wqe, std::uint16_t index) const = 0;
  virtual SharedReceive decode_shared_receive(std::span<const std::byte> entry, std::uint16_t index) const = 0;

  // --- Completions and events. `brought`: the message, when the entry brings it itself.
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
  // `output_bytes`: room that the driver has for what is answered.
  virtual Command decode_command(std::span<const std::byte> mailbox, std::uint32_t output_bytes) const = 0;
  virtual std::vector<std::byte> encode(const CommandResult& result, const CommandOutput& output) const = 0;
  // What is written over an entry's first bytes when its command is done.
  virtual std::vector<std::byte> command_done(CommandStatus status) const = 0;
};

// The one that docs/device.md publishes, and verbs/provider drives.
const Personality& rnic_personality();

}  // namespace rnicsim::nic
