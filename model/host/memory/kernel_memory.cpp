// SPDX-License-Identifier: Apache-2.0
#include "model/host/memory/kernel_memory.h"

#include <algorithm>
#include <cerrno>

namespace rnicsim::host {

provider::DmaBuffer KernelMemory::allocate(std::size_t bytes, std::size_t alignment) {
  std::byte* memory = arena_.allocate(bytes, alignment);
  if (!memory) return {};
  return {memory, kBusAddress + static_cast<std::uint64_t>(memory - arena_.begin())};
}

bool KernelMemory::read(std::uint64_t address, std::span<std::byte> bytes) {
  const auto range = arena_.range(address - kBusAddress, bytes.size());
  if (range.size() != bytes.size()) return false;
  std::ranges::copy(range, bytes.begin());
  return true;
}

bool KernelMemory::write(std::uint64_t address, std::span<const std::byte> bytes) {
  const auto range = arena_.range(address - kBusAddress, bytes.size());
  if (range.size() != bytes.size()) return false;
  std::ranges::copy(bytes, range.begin());
  return true;
}

int KernelMemory::admit(std::uint64_t address, std::uint64_t bytes, bool) {
  return arena_.range(address - kBusAddress, bytes).size() == bytes ? 0 : EFAULT;
}

}  // namespace rnicsim::host
