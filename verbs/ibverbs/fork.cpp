// fork: regions belong to the process that registered them and are reached through its own address space, so a child's
// copy-on-write never parts them from the device. In the child, its parent's objects are nobody's: posting to them,
// polling them and commands are ENODEV, and closing the context only lets go of the copies. The child opens the device
// anew, or imports its parent's context.
#include <infiniband/verbs.h>

#include <cstddef>

extern "C" {

int ibv_fork_init() { return 0; }
ibv_fork_status ibv_is_fork_initialized() { return IBV_FORK_UNNEEDED; }
int ibv_dontfork_range(void*, std::size_t) { return 0; }
int ibv_dofork_range(void*, std::size_t) { return 0; }

}  // extern "C"
