// SPDX-License-Identifier: Apache-2.0
// Driver side of the command queue, for the kernel agent. No call blocks: the agent submits a command, and checks for
// its completion after MSI-X vector 0, or by polling.
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
    std::span<const std::byte> output;  // output mailbox; valid until the slot is used again
  };

  // `ring`: kRingBytes, aligned to 4 KiB, with its address in reg::kCommandQueueBase. `mailboxes`: kMailboxesBytes.
  CommandQueue(DmaBuffer ring, DmaBuffer mailboxes, Mmio mmio);

  // nullopt: no entry is free, or the input is larger than a mailbox.
  std::optional<Slot> submit(std::span<const std::byte> input, std::size_t output_bytes);
  // nullopt: the device still owns the entry. Otherwise frees the slot.
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
