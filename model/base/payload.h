// Payload by reference: a slice of a refcounted, immutable-once-shared buffer. Copies share; nobody copies bytes but
// the DMA that reads them, the capture and the CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace rnicsim {

class Payload {
 public:
  Payload() = default;
  explicit Payload(std::size_t bytes)
      : buffer_(std::make_shared_for_overwrite<std::byte[]>(bytes)), length_(static_cast<std::uint32_t>(bytes)) {}
  static Payload copy_of(std::span<const std::byte> bytes);

  std::span<const std::byte> bytes() const { return {buffer_.get() + offset_, length_}; }
  std::span<std::byte> writable() { return {buffer_.get() + offset_, length_}; }
  std::uint32_t size() const { return length_; }
  bool empty() const { return length_ == 0; }
  Payload slice(std::uint32_t offset, std::uint32_t length) const {
    Payload part = *this;
    part.offset_ += offset;
    part.length_ = length;
    return part;
  }

 private:
  std::shared_ptr<std::byte[]> buffer_;
  std::uint32_t offset_ = 0;
  std::uint32_t length_ = 0;
};

}  // namespace rnicsim
