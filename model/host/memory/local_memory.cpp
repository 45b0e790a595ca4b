// SPDX-License-Identifier: Apache-2.0
#include "model/host/memory/local_memory.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cstring>

#include "model/host/memory/mappings.h"

namespace rnicsim::host {
namespace {

// Copies by a system call, so that an unmapped address returns false instead of a fatal signal.
template <auto copy>
bool copy_checked(std::uint64_t address, void* mine, std::size_t bytes) {
  iovec local{mine, bytes};
  iovec remote{reinterpret_cast<void*>(address), bytes};
  return copy(getpid(), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
}

}  // namespace

bool LocalMemory::read(std::uint64_t address, std::span<std::byte> bytes) {
  if (const auto range = known(address, bytes.size()); !range.empty()) {
    std::memcpy(bytes.data(), range.data(), range.size());
    return true;
  }
  return copy_checked<process_vm_readv>(address, bytes.data(), bytes.size());
}

bool LocalMemory::write(std::uint64_t address, std::span<const std::byte> bytes) {
  if (const auto range = known(address, bytes.size()); !range.empty()) {
    std::memcpy(range.data(), bytes.data(), range.size());
    return true;
  }
  return copy_checked<process_vm_writev>(address, const_cast<std::byte*>(bytes.data()), bytes.size());
}

int LocalMemory::admit(std::uint64_t address, std::uint64_t bytes, bool writable) {
  if (!known(address, bytes).empty()) return 0;
  return may_be_pinned(mappings_of(getpid(), address, bytes), address, bytes, writable);
}

std::span<std::byte> LocalMemory::known(std::uint64_t address, std::size_t bytes) const {
  const auto in_arena = arena_.range(address - reinterpret_cast<std::uint64_t>(arena_.begin()), bytes);
  if (!in_arena.empty()) return in_arena;
  for (const auto memory : trusted_) {
    const std::uint64_t offset = address - reinterpret_cast<std::uint64_t>(memory.data());
    if (offset <= memory.size() && bytes <= memory.size() - offset) return memory.subspan(offset, bytes);
  }
  return {};
}

}  // namespace rnicsim::host
