// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/processes/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>

#include "sim/os/throw_errno.h"

namespace rnicsim::sim {

SharedMemory::SharedMemory(const char* name, std::uint64_t bytes)
    : descriptor_(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING)), bytes_(bytes) {
  if (!descriptor_) throw_errno("memfd_create");
  if (::ftruncate(descriptor_.get(), off_t(bytes)) != 0) throw_errno("ftruncate");
  // If the process shrank the file, the simulator would get SIGBUS.
  ::fcntl(descriptor_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor_.get(), 0);
  if (mapped == MAP_FAILED) throw_errno("mmap");
  data_ = static_cast<std::byte*>(mapped);
}

SharedMemory::~SharedMemory() { ::munmap(data_, bytes_); }

}  // namespace rnicsim::sim
