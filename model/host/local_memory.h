// The memory of a software thread of the simulator's own process: bus address = pointer.
#pragma once

#include "model/host/address_space.h"
#include "model/host/dma_arena.h"

namespace rnicsim::host {

class LocalMemory : public AddressSpace {
 public:
  explicit LocalMemory(std::size_t arena_bytes) : arena_(arena_bytes) {}

  DmaArena& arena() { return arena_; }

  bool read(std::uint64_t address, std::span<std::byte> bytes) override;
  bool write(std::uint64_t address, std::span<const std::byte> bytes) override;

 private:
  std::span<std::byte> in_arena(std::uint64_t address, std::size_t bytes) const;

  DmaArena arena_;
};

}  // namespace rnicsim::host
