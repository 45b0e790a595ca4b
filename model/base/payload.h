// SPDX-License-Identifier: Apache-2.0
// Payload by reference: a slice of a refcounted buffer that is immutable once it is shared. Copies share the buffer.
// Only DMA reads, captures and the CPU copy bytes. All payloads belong to the simulation's one thread.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace rnicsim {

class Payload {
 public:
  Payload() = default;
  explicit Payload(std::size_t bytes)  // not initialised
      : buffer_(take(size_class_of(bytes))), length_(static_cast<std::uint32_t>(bytes)) {}
  Payload(const Payload& other) : buffer_(other.buffer_), offset_(other.offset_), length_(other.length_) {
    if (buffer_ != nullptr) ++buffer_->owners;
  }
  Payload(Payload&& other) noexcept
      : buffer_(std::exchange(other.buffer_, nullptr)),
        offset_(other.offset_),
        length_(std::exchange(other.length_, 0)) {}
  Payload& operator=(Payload other) noexcept {
    std::swap(buffer_, other.buffer_);
    offset_ = other.offset_;
    length_ = other.length_;
    return *this;
  }
  ~Payload() {
    if (buffer_ != nullptr && --buffer_->owners == 0) release(buffer_);
  }
  static Payload copy_of(std::span<const std::byte> bytes);

  std::span<const std::byte> bytes() const { return {data(), length_}; }
  std::span<std::byte> writable() { return {data(), length_}; }
  std::uint32_t size() const { return length_; }
  bool empty() const { return length_ == 0; }
  void shorten(std::uint32_t length) { length_ = length; }
  Payload slice(std::uint32_t offset, std::uint32_t length) const {
    Payload part = *this;
    part.offset_ += offset;
    part.length_ = length;
    return part;
  }

 private:
  struct alignas(64) Buffer {
    std::uint32_t owners;
    std::uint32_t size_class;
    Buffer* next;  // next idle buffer of this size
  };
  // Buffers have sizes of powers of two. Released buffers are kept for reuse, because the general heap is slow for
  // buffers of a packet's size. Results do not depend on the memory that a payload gets.
  static constexpr std::uint32_t kLeast = 6;     // log2 of bytes
  static constexpr std::uint32_t kLargest = 17;  // larger buffers are not kept
  static constinit thread_local std::array<Buffer*, kLargest + 1> idle_;

  static std::uint32_t size_class_of(std::size_t bytes) {
    return std::max(kLeast, static_cast<std::uint32_t>(std::bit_width(bytes - (bytes != 0))));
  }
  static Buffer* take(std::uint32_t size_class) {
    if (size_class > kLargest || idle_[size_class] == nullptr) return make(size_class);
    auto* buffer = std::exchange(idle_[size_class], idle_[size_class]->next);
    buffer->owners = 1;
    return buffer;
  }
  static void release(Buffer* buffer) {
    if (buffer->size_class > kLargest) return free(buffer);
    buffer->next = std::exchange(idle_[buffer->size_class], buffer);
  }
  [[gnu::noinline]] static Buffer* make(std::uint32_t size_class);
  [[gnu::noinline]] static void free(Buffer* buffer);
  std::byte* data() const { return buffer_ == nullptr ? nullptr : reinterpret_cast<std::byte*>(buffer_ + 1) + offset_; }

  Buffer* buffer_ = nullptr;
  std::uint32_t offset_ = 0;
  std::uint32_t length_ = 0;
};

}  // namespace rnicsim
