// SPDX-License-Identifier: Apache-2.0
// Memory of rings and doorbell records: zeroed, allocated by the port or by a program's allocator, released with the
// object.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "verbs/port/device_port.h"
#include "verbs/provider/dma.h"

namespace rnicsim::verbs {

// Purpose of an allocation, as the allocator of a parent domain gets it: the low bits below the driver's id, which is
// 0.
enum class MemoryUse : std::uint64_t {
  send_ring = 1,
  receive_ring = 2,
  completion_ring = 3,
  doorbell_record = 4,
  shared_receive_ring = 5,
};

// A program's allocator, given with a parent domain.
struct Allocator {
  ibv_pd* pd = nullptr;
  void* context = nullptr;
  void* (*alloc)(ibv_pd*, void*, std::size_t, std::size_t, std::uint64_t) = nullptr;
  void (*free)(ibv_pd*, void*, void*, std::uint64_t) = nullptr;
};

class DmaMemory {
 public:
  DmaMemory() = default;
  DmaMemory(DevicePort& port, std::size_t bytes, std::size_t alignment)
      : port_(&port), memory_(port.allocate(bytes, alignment)), bytes_(bytes) {}
  // Uses `allocator` if there is one and it does not return IBV_ALLOCATOR_USE_DEFAULT; else the port.
  DmaMemory(DevicePort& port, const Allocator* allocator, MemoryUse use, std::size_t bytes, std::size_t alignment);
  DmaMemory(DmaMemory&& other) noexcept { *this = std::move(other); }
  DmaMemory& operator=(DmaMemory&& other) noexcept {
    std::swap(port_, other.port_);
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    std::swap(allocator_, other.allocator_);
    std::swap(use_, other.use_);
    return *this;
  }
  ~DmaMemory() {
    if (memory_ != nullptr) give_back();
  }

  explicit operator bool() const { return memory_ != nullptr; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(memory_);
  }
  std::uint64_t bus_address() const { return reinterpret_cast<std::uintptr_t>(memory_); }
  provider::DmaBuffer buffer() const { return {memory_, bus_address()}; }

 private:
  void give_back();

  DevicePort* port_ = nullptr;
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
  const Allocator* allocator_ = nullptr;  // set: the allocator's memory, which is pinned
  MemoryUse use_{};
};

}  // namespace rnicsim::verbs
