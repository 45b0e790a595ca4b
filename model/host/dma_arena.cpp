#include "model/host/dma_arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <boost/interprocess/managed_external_buffer.hpp>
#include <cstdint>
#include <cstring>
#include <system_error>

namespace rnicsim::host {
namespace {

class Mapping {
 public:
  explicit Mapping(std::size_t bytes) : bytes_(bytes) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "no room for DMA memory");
    memory_ = static_cast<std::byte*>(memory);
  }
  ~Mapping() { munmap(memory_, bytes_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::byte* memory() const { return memory_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* memory_;
  std::size_t bytes_;
};

// Whole pages are given back: they are zeros when they are touched, and take no memory before.
void clear(std::span<std::byte> memory) {
  static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  const auto first = (begin + page - 1) / page * page - begin;
  const auto pages = memory.size() < first ? 0 : (memory.size() - first) / page * page;
  if (pages == 0 || madvise(memory.data() + first, pages, MADV_DONTNEED) != 0)
    return void(std::memset(memory.data(), 0, memory.size()));
  std::ranges::fill(memory.first(first), std::byte{0});
  std::ranges::fill(memory.subspan(first + pages), std::byte{0});
}

}  // namespace

struct DmaArena::Heap {
  explicit Heap(std::size_t bytes)
      : mapping(bytes), pieces(boost::interprocess::create_only, mapping.memory(), mapping.bytes()) {}
  Mapping mapping;
  boost::interprocess::managed_external_buffer pieces;
};

DmaArena::DmaArena(std::size_t bytes) : heap_(std::make_unique<Heap>(bytes)) {}
DmaArena::~DmaArena() = default;

std::byte* DmaArena::allocate(std::size_t bytes, std::size_t alignment) {
  // The heap keeps its records between the pieces; a whole cache line each keeps them out of the device's reach.
  constexpr std::size_t kLine = 64;
  const std::size_t whole = (std::max<std::size_t>(bytes, 1) + kLine - 1) / kLine * kLine;
  auto* memory = static_cast<std::byte*>(
      heap_->pieces.allocate_aligned(whole, std::max(alignment, kLine), std::nothrow));
  if (memory != nullptr) clear({memory, whole});
  return memory;
}

void DmaArena::release(std::byte* memory, std::size_t) { heap_->pieces.deallocate(memory); }

std::byte* DmaArena::begin() const { return heap_->mapping.memory(); }
std::size_t DmaArena::size() const { return heap_->mapping.bytes(); }

std::span<std::byte> DmaArena::range(std::uint64_t offset, std::size_t bytes) const {
  if (offset > size() || bytes > size() - offset) return {};
  return {begin() + offset, bytes};
}

}  // namespace rnicsim::host
