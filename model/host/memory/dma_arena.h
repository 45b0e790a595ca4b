// SPDX-License-Identifier: Apache-2.0
// Zeroed memory given out in pieces: an anonymous mapping that is reserved as a whole; only touched pages take memory.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace rnicsim::host {

class DmaArena {
 public:
  explicit DmaArena(std::size_t bytes);
  ~DmaArena();

  std::byte* allocate(std::size_t bytes, std::size_t alignment);  // nullptr when exhausted
  void release(std::byte* memory, std::size_t bytes);

  std::byte* begin() const { return memory_.data(); }
  std::size_t size() const { return memory_.size(); }
  // [offset, offset + bytes) of the arena; empty if the range is not inside.
  std::span<std::byte> range(std::uint64_t offset, std::size_t bytes) const {
    if (offset > size() || bytes > size() - offset) return {};
    return memory_.subspan(offset, bytes);
  }

 private:
  struct Heap;
  std::unique_ptr<Heap> heap_;
  std::span<std::byte> memory_;  // the whole arena
};

}  // namespace rnicsim::host
