// SPDX-License-Identifier: Apache-2.0
// Memory mapped from the kernel driver: rings, doorbell records, a UAR page.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <utility>

#include "verbs/linux/rnic_abi.h"
#include "verbs/provider/dma.h"

namespace rnicsim::linux_provider {

class Mapping {
 public:
  Mapping() = default;
  // Empty if `from` has no bytes, or if mmap fails (errno is set).
  Mapping(int command_file, const rnic_mapping& from, int protection = PROT_READ | PROT_WRITE) : bytes_(from.bytes) {
    if (bytes_ == 0) return;
    void* at = mmap(nullptr, bytes_, protection, MAP_SHARED, command_file, off_t(from.offset));
    memory_ = at != MAP_FAILED ? static_cast<std::byte*>(at) : nullptr;
  }
  Mapping(Mapping&& other) noexcept { *this = std::move(other); }
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping() {
    if (memory_ != nullptr) munmap(memory_, bytes_);
  }

  explicit operator bool() const { return memory_ != nullptr; }
  // The bus address is known to the kernel driver only; 0 here.
  provider::DmaBuffer buffer() const { return {memory_, 0}; }
  template <class T>
  T* at(std::size_t offset) const {
    return reinterpret_cast<T*>(memory_ + offset);
  }

 private:
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace rnicsim::linux_provider
