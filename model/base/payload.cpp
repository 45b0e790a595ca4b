// SPDX-License-Identifier: Apache-2.0
#include "model/base/payload.h"

#include <cstring>
#include <new>

namespace rnicsim {

constinit thread_local std::array<Payload::Buffer*, Payload::kLargest + 1> Payload::idle_{};

Payload::Buffer* Payload::make(std::uint32_t size_class) {
  void* memory = ::operator new (sizeof(Buffer) + (std::size_t{1} << size_class), std::align_val_t{alignof(Buffer)});
  return new (memory) Buffer{.owners = 1, .size_class = size_class, .next = nullptr};
}

void Payload::free(Buffer* buffer) { ::operator delete (buffer, std::align_val_t{alignof(Buffer)}); }

Payload Payload::copy_of(std::span<const std::byte> bytes) {
  Payload payload(bytes.size());
  if (!bytes.empty()) std::memcpy(payload.data(), bytes.data(), bytes.size());
  return payload;
}

}  // namespace rnicsim
