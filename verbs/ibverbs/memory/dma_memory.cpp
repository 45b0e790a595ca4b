// SPDX-License-Identifier: Apache-2.0
#include "verbs/ibverbs/memory/dma_memory.h"

#include <cstring>

namespace rnicsim::verbs {

namespace {

// A ring must have a bus address equal to its pointer. Where memory that was unmapped is still pinned at this address,
// that fails.
bool pin(OsServices& system, void* memory, std::size_t bytes) {
  std::uint64_t bus_address = 0;
  if (system.pin(memory, bytes, true, bus_address) != 0) return false;
  if (bus_address == reinterpret_cast<std::uintptr_t>(memory)) return true;
  system.unpin(bus_address, bytes, true);
  return false;
}

}  // namespace

DmaMemory::DmaMemory(DevicePort& port, const Allocator* allocator, MemoryUse use, std::size_t bytes,
                     std::size_t alignment) {
  void* given = IBV_ALLOCATOR_USE_DEFAULT;
  if (allocator != nullptr && allocator->alloc != nullptr)
    given = allocator->alloc(allocator->pd, allocator->context, bytes, alignment, std::uint64_t(use));
  if (given == IBV_ALLOCATOR_USE_DEFAULT) {
    *this = DmaMemory(port, bytes, alignment);
    return;
  }
  if (given == nullptr) return;
  if (reinterpret_cast<std::uintptr_t>(given) % alignment != 0 || !pin(port, given, bytes)) {
    allocator->free(allocator->pd, allocator->context, given, std::uint64_t(use));
    return;
  }
  std::memset(given, 0, bytes);
  port_ = &port;
  memory_ = static_cast<std::byte*>(given);
  bytes_ = bytes;
  allocator_ = allocator;
  use_ = use;
}

void DmaMemory::give_back() {
  if (allocator_ == nullptr) return port_->release(memory_, bytes_);
  port_->unpin(bus_address(), bytes_, true);
  allocator_->free(allocator_->pd, allocator_->context, memory_, std::uint64_t(use_));
}

}  // namespace rnicsim::verbs
