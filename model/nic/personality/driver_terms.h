// SPDX-License-Identifier: Apache-2.0
// Names from a device's manual, and decoding of driver data in memory, for reports of driver errors. The device does
// not use any of this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/nic/personality/commands.h"
#include "model/nic/personality/contexts.h"
#include "model/nic/personality/values.h"
#include "model/roce/types.h"

namespace rnicsim::nic {

struct RegisterTerm {
  std::uint32_t offset;  // in the register page
  std::uint32_t bits;
  bool readable;
  bool writable;
  const char* name;
};

// A doorbell of a UAR page.
struct DoorbellTerm {
  std::uint32_t offset;
  std::uint32_t bytes;  // size of its store; 0: whole blocks of a WQE
  const char* name;
};

struct CommandTerm {
  CommandOpcode opcode;
  const char* name;
};

// Reserved bytes that are not 0.
struct ReservedBytes {
  const char* layout;
  std::size_t offset;  // offset of the first such byte in its layout
  std::uint8_t value;
};

// Fields in the first bytes of a send WQE.
struct WqeClaims {
  bool blank = false;  // never written
  std::uint16_t index = 0;
  std::uint32_t qpn = 0;
  std::uint32_t bytes = 0;       // length of the WQE
  const char* opcode = nullptr;  // nullptr: no such opcode
};

class DriverTerms {
 public:
  virtual ~DriverTerms() = default;

  // --- Names.
  virtual std::span<const RegisterTerm> registers() const = 0;
  virtual std::span<const DoorbellTerm> doorbells() const = 0;
  virtual std::span<const CommandTerm> commands() const = 0;
  virtual const char* config_name(std::uint64_t offset) const = 0;  // nullptr: no name
  virtual const char* table_name(IcmTable table) const = 0;
  virtual const char* status_name(CommandStatus status) const = 0;

  // --- Commands. `little`: decode as if the driver had written the fields in little-endian order.
  virtual CommandEntry entry_of(std::span<const std::byte> bytes, bool little) const = 0;
  struct Header {
    std::uint16_t opcode;
    std::uint32_t object;
  };
  virtual Header header_of(std::span<const std::byte> mailbox, bool little) const = 0;
  virtual std::optional<ReservedBytes> reserved_in_entry(std::span<const std::byte> bytes) const = 0;
  virtual std::optional<ReservedBytes> reserved_in_mailbox(std::span<const std::byte> mailbox) const = 0;

  // --- Counters of doorbells and records are shorter than their fields. Returns the counter that the driver probably
  // meant, if the field's value is out of range, but in range with its bytes swapped. `offset`: in a UAR page.
  virtual std::optional<std::uint32_t> swapped_position(std::uint32_t offset,
                                                        std::span<const std::byte> doorbell) const = 0;
  virtual std::optional<std::uint32_t> swapped_consumer(std::span<const std::byte> cq_record) const = 0;
  virtual std::optional<std::uint32_t> swapped_receives(std::span<const std::byte> qp_record) const = 0;

  // --- Work requests; `wqe` is the whole WQE.
  virtual WqeClaims claims_of(std::span<const std::byte> head, bool little) const = 0;
  virtual std::optional<ReservedBytes> reserved_in_wqe(std::span<const std::byte> wqe,
                                                       roce::Transport transport) const = 0;
  virtual std::optional<ReservedBytes> reserved_in_shared_receive(std::span<const std::byte> entry) const = 0;

  // --- Entries of queues that the device writes: true if a driver would take the entry as written, at that position.
  virtual bool cqe_is_drivers(std::span<const std::byte> entry, std::uint32_t position, std::uint8_t log) const = 0;
  virtual bool eqe_is_drivers(std::span<const std::byte> entry, std::uint32_t position, std::uint8_t log) const = 0;
  virtual std::size_t owner_bytes() const = 0;  // at the end of each entry, written last
};

// Terms of the device in docs/device.md.
const DriverTerms& rnic_driver_terms();

}  // namespace rnicsim::nic
