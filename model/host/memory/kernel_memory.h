// SPDX-License-Identifier: Apache-2.0
// The kernel's own DMA memory, behind PASID 0: the command queue, the event queues and the contexts lent to the device.
// Bus addresses are the same in every run, independent of the mapping's host address.
#pragma once

#include "model/host/memory/address_space.h"
#include "model/host/memory/dma_arena.h"
#include "verbs/provider/dma.h"

namespace rnicsim::host {

class KernelMemory : public AddressSpace {
 public:
  explicit KernelMemory(std::size_t bytes) : arena_(bytes) {}

  // `memory` is nullptr when no memory is left.
  provider::DmaBuffer allocate(std::size_t bytes, std::size_t alignment);
  void release(const provider::DmaBuffer& buffer, std::size_t bytes) { arena_.release(buffer.memory, bytes); }

  bool read(std::uint64_t address, std::span<std::byte> bytes) override;
  bool write(std::uint64_t address, std::span<const std::byte> bytes) override;
  int admit(std::uint64_t address, std::uint64_t bytes, bool writable) override;
  std::optional<SharedPage> shared_page(std::uint64_t) const override { return std::nullopt; }

 private:
  static constexpr std::uint64_t kBusAddress = 0x1'0000'0000;  // address of the arena's first byte
  DmaArena arena_;
};

}  // namespace rnicsim::host
