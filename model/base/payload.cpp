#include "model/base/payload.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <new>

namespace rnicsim {

// Buffers of powers of two, kept for the next of their size: the general heap is slow for whole packets. What a run
// computes does not depend on which memory it gets.
struct Payload::Pool {
  static constexpr std::uint32_t kLeast = 6;         // log2 of bytes
  static constexpr std::uint32_t kLargest = 17;      // larger ones are not kept
  std::array<Buffer*, kLargest + 1> idle{};

  static constinit thread_local Pool instance;
};
constinit thread_local Payload::Pool Payload::Pool::instance{};

Payload::Payload(std::size_t bytes) : length_(static_cast<std::uint32_t>(bytes)) {
  const auto size_class =
      std::max<std::uint32_t>(Pool::kLeast, static_cast<std::uint32_t>(std::bit_width(bytes - (bytes != 0))));
  if (size_class <= Pool::kLargest && Pool::instance.idle[size_class] != nullptr) {
    buffer_ = Pool::instance.idle[size_class];
    Pool::instance.idle[size_class] = buffer_->next;
  } else {
    void* memory = ::operator new(sizeof(Buffer) + (std::size_t{1} << size_class), std::align_val_t{alignof(Buffer)});
    buffer_ = new (memory) Buffer{.owners = 0, .size_class = size_class, .next = nullptr};
  }
  buffer_->owners = 1;
}

void Payload::release(Buffer* buffer) {
  if (buffer->size_class > Pool::kLargest) return ::operator delete(buffer, std::align_val_t{alignof(Buffer)});
  auto& idle = Pool::instance.idle[buffer->size_class];
  buffer->next = idle;
  idle = buffer;
}

Payload Payload::copy_of(std::span<const std::byte> bytes) {
  Payload payload(bytes.size());
  if (!bytes.empty()) std::memcpy(payload.data(), bytes.data(), bytes.size());
  return payload;
}

}  // namespace rnicsim
