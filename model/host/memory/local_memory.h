// SPDX-License-Identifier: Apache-2.0
// The memory of a software thread in the simulator's process: bus address = pointer.
#pragma once

#include <vector>

#include "model/host/memory/address_space.h"
#include "model/host/memory/dma_arena.h"

namespace rnicsim::host {

class LocalMemory : public AddressSpace {
 public:
  explicit LocalMemory(std::size_t arena_bytes) : arena_(arena_bytes) {}

  DmaArena& arena() { return arena_; }

  // Declares memory that stays mapped as long as this object lives: accesses need no check by the kernel.
  void trust(std::span<std::byte> memory) { trusted_.push_back(memory); }

  bool read(std::uint64_t address, std::span<std::byte> bytes) override;
  bool write(std::uint64_t address, std::span<const std::byte> bytes) override;
  int admit(std::uint64_t address, std::uint64_t bytes, bool writable) override;
  // All processes of this kind share the simulator's memory.
  std::optional<SharedPage> shared_page(std::uint64_t address) const override {
    return SharedPage{0, 0, address / kPage};
  }

 private:
  // Empty: not memory that is known to be mapped.
  std::span<std::byte> known(std::uint64_t address, std::size_t bytes) const;

  DmaArena arena_;
  std::vector<std::span<std::byte>> trusted_;
};

}  // namespace rnicsim::host
