// SPDX-License-Identifier: Apache-2.0
#include "sim/host/shim/own_memory.h"

#include <sys/syscall.h>

#include "sim/host/shim/raw_call.h"

namespace rnicsim::clock {

bool copy_in(void* to, const void* from, std::size_t bytes) {
  const iovec local{to, bytes};
  const iovec remote{const_cast<void*>(from), bytes};
  return raw_call(SYS_process_vm_readv, raw_call(SYS_getpid), &local, 1, &remote, 1, 0) == long(bytes);
}

bool copy_to_parts(std::span<const iovec> parts, const void* from, std::size_t bytes) {
  const iovec local{const_cast<void*>(from), bytes};
  return raw_call(SYS_process_vm_writev, raw_call(SYS_getpid), &local, 1, parts.data(), parts.size(), 0) == long(bytes);
}

bool copy_out(void* to, const void* from, std::size_t bytes) {
  const iovec part{to, bytes};
  return copy_to_parts({&part, 1}, from, bytes);
}

}  // namespace rnicsim::clock
