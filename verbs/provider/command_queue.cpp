// SPDX-License-Identifier: Apache-2.0
#include "verbs/provider/command_queue.h"

#include <algorithm>
#include <cstring>

#include "model/abi/device.h"

namespace rnicsim::provider {

CommandQueue::CommandQueue(DmaBuffer ring, DmaBuffer mailboxes, Mmio mmio)
    : ring_(ring), mailboxes_(mailboxes), mmio_(std::move(mmio)) {
  for (Slot slot = 0; slot < kEntries; ++slot) entry(slot) = {};
}

std::optional<CommandQueue::Slot> CommandQueue::submit(std::span<const std::byte> bytes, std::size_t output_bytes) {
  if (bytes.size() > abi::kMailboxBytes || output_bytes > abi::kMailboxBytes) return std::nullopt;
  const auto free = std::ranges::find_if(pending_, [](const Pending& pending) { return !pending.busy; });
  if (free == pending_.end()) return std::nullopt;
  const Slot slot = Slot(free - pending_.begin());

  *free = {.busy = true, .token = next_token_++, .output_bytes = output_bytes};
  std::memcpy(input(slot).memory, bytes.data(), bytes.size());
  std::memset(output(slot).memory, 0, output_bytes);
  abi::CommandEntry& command = entry(slot);
  command.status = abi::CommandStatus::ok;
  command.token = free->token;
  command.input_bytes = std::uint32_t(bytes.size());
  command.input = input(slot).bus_address;
  command.output = output(slot).bus_address;
  command.output_bytes = std::uint32_t(output_bytes);
  publish(command.owner, std::uint8_t(1));

  const abi::Be32 doorbell = 1u << slot;
  mmio_(abi::kRegisterPage + abi::reg::kCommandDoorbell, bytes_of(doorbell));
  return slot;
}

std::optional<CommandQueue::Completion> CommandQueue::try_complete(Slot slot) {
  Pending& pending = pending_[slot];
  if (!pending.busy || observe(entry(slot).owner) != 0) return std::nullopt;
  pending.busy = false;
  const bool mine = entry(slot).token == pending.token;
  return Completion{.status = mine ? entry(slot).status : abi::CommandStatus::internal_error,
                    .output = {output(slot).memory, pending.output_bytes}};
}

}  // namespace rnicsim::provider
