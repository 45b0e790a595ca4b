// The driver's side of the command queue, of the kernel's agent. Nothing blocks: a command is submitted, and its
// completion looked for when the device's MSI-X vector 0 (or a poll) says so.
//
// Contract with the device: the input mailbox and the entry are plain stores, `owner` is published (release) after them
// and before the doorbell. The device writes the output mailbox, then the status, then clears `owner` (release), which
// the driver observes (acquire) before it reads the rest.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "model/abi/command.h"
#include "verbs/provider/dma.h"
#include "verbs/provider/uar.h"

namespace rnicsim::provider {

class CommandQueue {
 public:
  static constexpr std::uint32_t kEntries = 1u << abi::kCommandLogEntries;
  static constexpr std::size_t kRingBytes = kEntries * sizeof(abi::CommandEntry);
  static constexpr std::size_t kMailboxesBytes = std::size_t(2) * kEntries * abi::kMailboxBytes;

  using Slot = std::uint32_t;
  struct Completion {
    abi::CommandStatus status = abi::CommandStatus::ok;
    std::span<const std::byte> output;  // the mailbox: valid until the slot is submitted again
  };

  // `ring` has kRingBytes, 4 KiB aligned, and is at reg::kCommandQueueBase; `mailboxes` has kMailboxesBytes.
  CommandQueue(DmaBuffer ring, DmaBuffer mailboxes, Mmio mmio);

  // nullopt when every entry is in use, or the input is larger than a mailbox.
  std::optional<Slot> submit(std::span<const std::byte> input, std::size_t output_bytes);
  // nullopt while the device has it. Frees the slot.
  std::optional<Completion> try_complete(Slot slot);

 private:
  struct Pending {
    bool busy = false;
    std::uint16_t token = 0;
    std::size_t output_bytes = 0;
  };

  abi::CommandEntry& entry(Slot slot) const { return reinterpret_cast<abi::CommandEntry*>(ring_.memory)[slot]; }
  DmaBuffer input(Slot slot) const { return mailboxes_.at(std::size_t(2) * slot * abi::kMailboxBytes); }
  DmaBuffer output(Slot slot) const { return mailboxes_.at((std::size_t(2) * slot + 1) * abi::kMailboxBytes); }

  DmaBuffer ring_;
  DmaBuffer mailboxes_;
  Mmio mmio_;
  std::array<Pending, kEntries> pending_{};
  std::uint16_t next_token_ = 1;
};

}  // namespace rnicsim::provider
