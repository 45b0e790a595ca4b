// SPDX-License-Identifier: Apache-2.0
// fork: a region belongs to the process that registered it and is accessed through that process's address space, so
// copy-on-write in a child does not affect it. In the child, the parent's objects are unusable: posts, polls and
// commands fail with ENODEV, and closing the context frees only the child's copies. The child opens the device again,
// or imports the parent's context.
#include <infiniband/verbs.h>

#include <cstddef>

extern "C" {

int ibv_fork_init() { return 0; }
ibv_fork_status ibv_is_fork_initialized() { return IBV_FORK_UNNEEDED; }
int ibv_dontfork_range(void*, std::size_t) { return 0; }
int ibv_dofork_range(void*, std::size_t) { return 0; }

}  // extern "C"
