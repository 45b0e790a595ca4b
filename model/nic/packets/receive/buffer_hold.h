// SPDX-License-Identifier: Apache-2.0
// Space of a frame in the receive buffer; the destructor frees it. A copy holds no space.
#pragma once

#include <cstdint>
#include <utility>

namespace rnicsim::nic {

class BufferHold {
 public:
  BufferHold() = default;
  // Adds `bytes` to `taken`, the bytes taken in total, which must outlive this object.
  BufferHold(std::uint64_t& taken, std::uint32_t bytes) : taken_(&taken), bytes_(bytes) { taken += bytes; }
  BufferHold(const BufferHold&) noexcept {}
  BufferHold(BufferHold&& other) noexcept : taken_(std::exchange(other.taken_, nullptr)), bytes_(other.bytes_) {}
  BufferHold& operator=(const BufferHold& other) noexcept {
    if (this != &other) let_go();
    return *this;
  }
  BufferHold& operator=(BufferHold&& other) noexcept {
    if (this == &other) return *this;
    let_go();
    taken_ = std::exchange(other.taken_, nullptr);
    bytes_ = other.bytes_;
    return *this;
  }
  ~BufferHold() { let_go(); }

 private:
  void let_go() {
    if (taken_ != nullptr) *std::exchange(taken_, nullptr) -= bytes_;
  }

  std::uint64_t* taken_ = nullptr;
  std::uint32_t bytes_ = 0;
};

}  // namespace rnicsim::nic
