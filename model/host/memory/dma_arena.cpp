// SPDX-License-Identifier: Apache-2.0
#include "model/host/memory/dma_arena.h"

#include <algorithm>
#include <boost/interprocess/managed_external_buffer.hpp>

#include "model/host/memory/sparse_memory.h"

namespace rnicsim::host {

struct DmaArena::Heap {
  explicit Heap(std::size_t bytes)
      : memory(bytes), pieces(boost::interprocess::create_only, memory.bytes().data(), bytes) {}
  SparseMemory memory;
  boost::interprocess::managed_external_buffer pieces;
};

DmaArena::DmaArena(std::size_t bytes) : heap_(std::make_unique<Heap>(bytes)), memory_(heap_->memory.bytes()) {}
DmaArena::~DmaArena() = default;

std::byte* DmaArena::allocate(std::size_t bytes, std::size_t alignment) {
  // The heap's records lie between the pieces; pieces of whole cache lines keep DMA away from them.
  constexpr std::size_t kLine = 64;
  const std::size_t whole = (std::max<std::size_t>(bytes, 1) + kLine - 1) / kLine * kLine;
  auto* memory =
      static_cast<std::byte*>(heap_->pieces.allocate_aligned(whole, std::max(alignment, kLine), std::nothrow));
  if (memory != nullptr) SparseMemory::clear({memory, whole});
  return memory;
}

void DmaArena::release(std::byte* memory, std::size_t) { heap_->pieces.deallocate(memory); }

}  // namespace rnicsim::host
