// Zeroed memory handed out in pieces: an anonymous mapping, reserved whole and used as far as it is touched.
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
  // [offset, offset + bytes) of the arena; empty when it reaches outside.
  std::span<std::byte> range(std::uint64_t offset, std::size_t bytes) const {
    if (offset > size() || bytes > size() - offset) return {};
    return memory_.subspan(offset, bytes);
  }

 private:
  struct Heap;
  std::unique_ptr<Heap> heap_;
  std::span<std::byte> memory_;         // all of it
};

}  // namespace rnicsim::host
