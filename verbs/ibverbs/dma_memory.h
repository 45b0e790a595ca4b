// Rings and doorbell records: zeroed memory from the port, given back when the object goes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "verbs/port/device_port.h"
#include "verbs/provider/dma.h"

namespace rnicsim::verbs {

class DmaMemory {
 public:
  DmaMemory() = default;
  DmaMemory(DevicePort& port, std::size_t bytes, std::size_t alignment)
      : port_(&port), memory_(port.allocate(bytes, alignment)), bytes_(bytes) {}
  DmaMemory(DmaMemory&& other) noexcept { *this = std::move(other); }
  DmaMemory& operator=(DmaMemory&& other) noexcept {
    std::swap(port_, other.port_);
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~DmaMemory() {
    if (memory_ != nullptr) port_->release(memory_, bytes_);
  }

  explicit operator bool() const { return memory_ != nullptr; }
  template <class T>
  T* as() const { return reinterpret_cast<T*>(memory_); }
  std::uint64_t bus_address() const { return reinterpret_cast<std::uintptr_t>(memory_); }
  provider::DmaBuffer buffer() const { return {memory_, bus_address()}; }

 private:
  DevicePort* port_ = nullptr;
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace rnicsim::verbs
