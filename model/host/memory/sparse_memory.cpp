// SPDX-License-Identifier: Apache-2.0
#include "model/host/memory/sparse_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <system_error>

namespace rnicsim::host {

// boost::interprocess::anonymous_shared_memory is not used: all of it would count as used, and children would share it.
SparseMemory::SparseMemory(std::size_t bytes, std::uintptr_t wanted) {
  if (bytes == 0) return;
  void* memory = mmap(reinterpret_cast<void*>(wanted), bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "simulated memory");
  bytes_ = {static_cast<std::byte*>(memory), bytes};
}

SparseMemory::~SparseMemory() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

void SparseMemory::clear(std::span<std::byte> part) {
  static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto into_page = reinterpret_cast<std::uintptr_t>(part.data()) % page;
  const auto first = std::min(part.size(), into_page == 0 ? 0 : page - into_page);
  const auto pages = (part.size() - first) / page * page;
  const bool given_back = pages != 0 && madvise(part.data() + first, pages, MADV_DONTNEED) == 0;
  std::ranges::fill(part.first(given_back ? first : first + pages), std::byte{0});
  std::ranges::fill(part.subspan(first + pages), std::byte{0});
}

}  // namespace rnicsim::host
